-- kernel_text — in which spelling does a rule of the taxonomy read a kernel name?
--
-- One kernel has many spellings: `void ns::f<(int)4>(T1)`, `ns::f<4>(int)`, `_ZN2ns1fILi4EEEvi`,
-- with `<unnamed>` or `(anonymous namespace)`, in snake or camel case. Rules read one of three
-- texts, all made here; the macros of the rules themselves are generated from taxonomy.yaml.
--
--     text       the whole name, bounded, one spelling of anonymous namespaces
--     function   the qualified function name: no return type, no arguments, no template arguments
--     words      the function in lower-case words: `ns::LayerNormFwd_v2` is `ns::layer norm fwd v2`
--
-- A name is cut to 4096 characters first: some exporters write megabytes of template arguments,
-- and what a kernel is called is always said at the front.
--
-- @pitfall 20

-- kernel_text(p_name) -> VARCHAR. In a mangled name the lengths before the identifiers become `::`,
-- which is enough for a rule that looks for a word among the template arguments.
CREATE OR REPLACE MACRO nsys.kernel_text(p_name) AS
    CASE
        WHEN starts_with(p_name, '_Z')
            THEN regexp_replace(left(p_name, 4096), '\d+([A-Za-z_])', '::\1', 'g')
        ELSE replace(
            replace(left(p_name, 4096), '<unnamed>', '(anonymous namespace)'),
            '{anonymous}',
            '(anonymous namespace)'
        )
    END;

-- kernel_mangled_function(p_name) -> VARCHAR: the qualified name inside a mangled one.
-- The state is `names so far|rest`. Each step reads a length and moves that many characters over
-- to the left; a rest that starts with anything but a length (template arguments, the end) stays.
-- A plain function (no N after _Z) has one identifier only; what follows it are its parameters.
CREATE OR REPLACE MACRO nsys.kernel_mangled_function(p_name) AS
    regexp_replace(
        regexp_extract(
            list_reduce(
                CASE
                    WHEN starts_with(p_name, '_ZN') THEN ['', '', '', '', '', '', '', '']
                    ELSE ['']
                END,
                LAMBDA p_state, p_step: CASE
                    WHEN regexp_matches(p_state, '\|\d{1,4}\D')
                        THEN regexp_extract(p_state, '^[^|]*')
                            || '::'
                            || left(
                                regexp_extract(p_state, '\|\d{1,4}(.*)$', 1, 's'),
                                regexp_extract(p_state, '\|(\d{1,4})', 1)::INTEGER
                            )
                            || '|'
                            || substring(
                                regexp_extract(p_state, '\|\d{1,4}(.*)$', 1, 's'),
                                regexp_extract(p_state, '\|(\d{1,4})', 1)::INTEGER + 1
                            )
                    ELSE p_state
                END,
                regexp_replace(left(p_name, 1024), '^_ZN?[KVrO]*(?:L|St)*', '|')
            ),
            '^[^|]*'
        ),
        -- The compiler calls an anonymous namespace _GLOBAL__N_ and adds the file's name.
        '^::|_GLOBAL__N_\w*::',
        '',
        'g'
    );

-- kernel_function(p_name) -> VARCHAR: what stands before the first `<` or `(` once anonymous
-- namespaces and the return type are gone. A return type of std::enable_if brings brackets of its
-- own, and the name after it is the kernel's.
CREATE OR REPLACE MACRO nsys.kernel_function(p_name) AS
    CASE
        WHEN starts_with(p_name, '_Z') THEN nsys.kernel_mangled_function(p_name)
        ELSE regexp_extract(
            regexp_replace(
                left(p_name, 1024),
                '(?:<unnamed>|\(anonymous namespace\)|\{anonymous\})(?:::)?',
                '',
                'g'
            ),
            '^\s*(?:(?:static|inline|extern|__global__|void|bool|int|float|double|auto)\s+'
            || '|(?:typename\s+)?std::enable_if(?:_t)?<.*?>(?:::type)?\s+)*'
            || '([\w$~.:\-]+)',
            1
        )
    END;

-- kernel_words(p_function) -> VARCHAR: the function in lower-case words, namespaces kept apart.
CREATE OR REPLACE MACRO nsys.kernel_words(p_function) AS
    lower(
        regexp_replace(
            regexp_replace(
                regexp_replace(p_function, '([a-z0-9])([A-Z])', '\1 \2', 'g'),
                '([A-Z]+)([A-Z][a-z])',
                '\1 \2',
                'g'
            ),
            '[_$.\-]+',
            ' ',
            'g'
        )
    );
