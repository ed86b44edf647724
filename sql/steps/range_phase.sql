-- range_phase — which phase of a training step do the names of a path speak of?
--
-- The table below is the whole list: names as trainers and frameworks give them, lower-case, the
-- first that matches. A schedule that holds both passes is no phase. Of the names of a path the
-- innermost with a phase counts, since some trainers run the passes inside the optimizer's step;
-- but a forward pass inside a backward pass is recomputation and stays backward.
--
-- @grain  one row per path that lies in a phase
-- @reads  nsys.range_path, nsys.range_name
-- @column path_no  BIGINT  -  path of nsys.range_path
-- @column phase    VARCHAR -  forward, backward, grad_sync, optimizer, data, evaluation, checkpoint
-- @column is_named BOOLEAN -  the innermost range of the path is itself named like the phase
WITH rule AS (
    SELECT * FROM (
        VALUES
            -- PyTorch: autograd::engine::evaluate_function: AddmmBackward0
            (1, 'backward', '^autograd::engine|[a-z]backward[0-9*]*$'),
            -- Megatron: forward-backward; other schedules: fwd_bwd, forward_and_backward
            (2, NULL, '(forward|fwd)[^a-z]*(and|/)?[^a-z]*(backward|bwd)'),
            (3, 'evaluation', '(^|[^a-z])(eval|evaluate|evaluation|validate|validation)([^a-z]|$)'),
            -- Megatron: batch-generator; PyTorch: enumerate(DataLoader)#...; Lightning: ..._next
            (4, 'data', 'data[-_ ]?(loader|loading|iter)|batch[-_ ]?generator|prefetch'),
            (5, 'data', '(^|[^a-z])(get|next|fetch|load)[-_ ]?(batch|data)([^a-z]|$)'),
            (6, 'checkpoint', '(save|load)[-_ ]?checkpoint|checkpoint[-_ ]?(save|load)'),
            -- Megatron: all-grads-sync, finalize-model-grads
            (7, 'grad_sync', 'grads?[-_ ]?(all[-_ ]?)?(sync|reduce)|finalize.?model.?grads'),
            -- PyTorch: Optimizer.step#AdamW.step; Megatron: optimizer-copy-to-main-grad, ...
            (8, 'optimizer', '(^|[^a-z])optim(izer)?s?([^a-z]|$)'),
            (9, 'optimizer', '(^|[^a-z])(clip[-_ ]?grad|zero[-_ ]?grad)|clip[-_ ]?main[-_ ]?grad'),
            (10, 'backward', '(^|[^a-z])(backward|bwd)([^a-z]|$)'),
            (11, 'forward', '(^|[^a-z])(forward|fwd)([^a-z]|$)'),
            -- Lightning wraps the model's pass and its loss in training_step
            (12, 'forward', '\.training_step$')
    ) AS listed (position, phase, expression)
),
named AS (
    SELECT n.name_no, arg_min({'phase': r.phase}, r.position).phase AS phase
    FROM (SELECT DISTINCT name_no, lower(name) AS word FROM nsys.range_name) AS n
    INNER JOIN rule AS r ON regexp_matches(n.word, r.expression)
    GROUP BY n.name_no
    HAVING phase IS NOT NULL
),
level AS (
    SELECT path_no, depth, unnest(name_nos) AS name_no,
        generate_subscripts(name_nos, 1) AS position
    FROM nsys.range_path
),
found AS (
    SELECT
        l.path_no,
        arg_max(n.phase, l.position) AS inner_phase,
        max(l.position) = any_value(l.depth) AS is_named,
        bool_or(n.phase = 'backward') AS is_backward,
    FROM level AS l
    INNER JOIN named AS n ON n.name_no = l.name_no
    GROUP BY l.path_no
)
SELECT
    path_no,
    CASE WHEN inner_phase = 'forward' AND is_backward THEN 'backward' ELSE inner_phase END AS phase,
    is_named,
FROM found;
