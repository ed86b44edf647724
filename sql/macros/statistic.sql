-- statistic — what is the median of a measure that is absent, and so 0, in some windows?
--
-- A window in which an operation does not occur counts 0 in its median, but has no row. The
-- macros take the values that exist (none negative) and the number of all windows, so that no
-- table of names times windows is ever built.
CREATE OR REPLACE MACRO nsys.padded_at(p_values, p_n, p_position) AS
    CASE
        WHEN p_position <= p_n - len(p_values) THEN 0
        ELSE list_sort(p_values)[p_position - (p_n - len(p_values))]
    END;
-- mean of the middle two where the number is even
CREATE OR REPLACE MACRO nsys.padded_median(p_values, p_n) AS
    (
        nsys.padded_at(p_values, p_n, (p_n + 1) // 2)
        + nsys.padded_at(p_values, p_n, (p_n + 2) // 2)
    ) / 2;
CREATE OR REPLACE MACRO nsys.padded_min(p_values, p_n) AS
    CASE WHEN len(p_values) < p_n THEN 0 ELSE list_min(p_values) END;
CREATE OR REPLACE MACRO nsys.padded_max(p_values, p_n) AS coalesce(list_max(p_values), 0);
-- the same in whole numbers, for differences of medians that have to add up exactly: of an even
-- number the mean of the middle two, half a unit rounded down
CREATE OR REPLACE MACRO nsys.padded_middle(p_values, p_n) AS
    (
        (
            nsys.padded_at(p_values, p_n, (p_n + 1) // 2)
            + nsys.padded_at(p_values, p_n, (p_n + 2) // 2)
        ) // 2
    )::BIGINT;
