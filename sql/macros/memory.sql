-- memory — what is a kind of memory called?
--
-- The numbers are those of the exporter, which are not the ones of CUPTI. A number that is not
-- known, and the exporter's own 7 for unknown, are NULL: nobody can say pinned or pageable then.
CREATE OR REPLACE MACRO nsys.memory_kind(p_number) AS
    [
        'pageable', 'pinned', 'device', 'array', 'managed', 'device static', 'managed static'
    ][p_number + 1];
