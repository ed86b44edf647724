-- metric — what does a sampled hardware counter measure, told by its name?
--
-- Ids differ between files (pitfall 17), and so do the details of names: `SM Active` became `SMs
-- Active`, and a unit in brackets was added. Only shares of the peak are read. Of NVLink only the
-- user data of responses counts: requests understate the payload (pitfall 16).
CREATE OR REPLACE MACRO nsys.metric_kind(p_name) AS
    CASE
        WHEN contains(p_name, '[') AND NOT contains(p_name, '%]') THEN NULL
        WHEN regexp_matches(p_name, '^sms? issue\b', 'i') THEN 'sm_issue'
        WHEN regexp_matches(p_name, '^tensor active\b', 'i') THEN 'tensor_active'
        WHEN regexp_matches(p_name, '^d?v?ram read\b', 'i') THEN 'dram_read'
        WHEN regexp_matches(p_name, '^d?v?ram write\b', 'i') THEN 'dram_write'
        WHEN regexp_matches(p_name, '^nvlink rx responses? user data\b', 'i') THEN 'nvlink_rx'
        WHEN regexp_matches(p_name, '^nvlink tx responses? user data\b', 'i') THEN 'nvlink_tx'
        WHEN regexp_matches(p_name, '^sms? active\b', 'i') THEN 'sms_active'
    END;
