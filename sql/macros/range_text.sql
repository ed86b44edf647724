-- range_text — under which name do numbered NVTX ranges belong together?
--
-- `layer 3` and `layer 4` are `layer *`: the number at the end goes first (nsys.text_stem, cheap,
-- for every row), then, once for each stem, every number that no letter follows, so that `conv2d`
-- stays what it is. What PyTorch puts behind the name of an operator is left out.
CREATE OR REPLACE MACRO nsys.range_stem(p_text) AS
    nsys.text_stem(left(coalesce(p_text, '(unnamed)'), 200));

CREATE OR REPLACE MACRO nsys.range_fold(p_stem) AS
    regexp_replace(
        regexp_replace(
            regexp_replace(p_stem, ', (seq|op_id) = [*]$', ''),
            '[0-9*]+([^0-9A-Za-z*]|$)',
            '*\1',
            'g'
        ),
        '[*]+',
        '*',
        'g'
    );
