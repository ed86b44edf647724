-- pattern — does a text match an anchor pattern, and which pattern does a name belong to?
--
-- A pattern is matched against the whole text, case-sensitively. `*` stands for any run of
-- characters, the empty one included; everything else is literal, also `%`, `_`, `?` and `[`.

-- LIKE does the work: its own wildcards are escaped before `*` becomes `%`.
CREATE OR REPLACE MACRO nsys.matches(p_text, p_pattern) AS
    p_text LIKE replace(
        replace(replace(replace(p_pattern, '!', '!!'), '%', '!%'), '_', '!_'), '*', '%'
    ) ESCAPE '!';

-- The cheap half of folding, run on every row: what tells the members of a numbered family
-- apart is mostly a number at the end, or PyTorch's `, seq = N, op_id = M, sizes = …` tail.
CREATE OR REPLACE MACRO nsys.text_stem(p_text) AS
    CASE
        WHEN contains(p_text, ', seq = ') THEN split_part(p_text, ', seq = ', 1) || ', seq = *'
        WHEN contains(p_text, ', op_id = ')
            THEN split_part(p_text, ', op_id = ', 1) || ', op_id = *'
        WHEN right(p_text, 1) BETWEEN '0' AND '9' THEN rtrim(p_text, '0123456789') || '*'
        ELSE p_text
    END;

-- The other half, run once per stem: every run of digits becomes `*`.
CREATE OR REPLACE MACRO nsys.text_fold(p_stem) AS
    regexp_replace(p_stem, '[0-9*]+', '*', 'g');

-- An exporter closes an open NVTX range at the session end, or leaves its end empty.
-- p_session_end_ns is NULL where that end is not known on the clock of the rows.
CREATE OR REPLACE MACRO nsys.is_unclosed(p_end_ns, p_session_end_ns) AS
    coalesce(p_end_ns >= p_session_end_ns, p_end_ns IS NULL);

-- The shortest readable pattern of a kernel name at a level of detail from 1 to 4.
CREATE OR REPLACE MACRO nsys.kernel_pattern(p_name, p_level) AS
    CASE
        WHEN p_level = 1 AND regexp_matches(p_name, '[<(]')
            THEN regexp_extract(
                p_name, '^(?:<unnamed>|\(anonymous namespace\)|[^<(])*[<(]'
            ) || '*'
        WHEN p_level = 2 AND length(p_name) > 60 THEN left(p_name, 60) || '*'
        WHEN p_level = 3 AND length(p_name) > 120 THEN left(p_name, 120) || '*'
        ELSE p_name
    END;

-- A duration for a sentence.
CREATE OR REPLACE MACRO nsys.duration_text(p_ns) AS
    CASE
        WHEN p_ns >= 1000000000 THEN format('{:.2f} s', p_ns / 1e9)
        WHEN p_ns >= 1000000 THEN format('{:.1f} ms', p_ns / 1e6)
        ELSE format('{:.1f} us', p_ns / 1e3)
    END;
