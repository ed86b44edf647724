"""Single adapters over small tables made by hand, as in test_small_tables."""

import hashlib
import re

import pytest

from conftest import ROOT

TEXT = ("text", "value", "name", "jsonText", "busLocation", "pciBusId", "uuid")


@pytest.fixture
def adapted(bare):
    """`adapted(adapter, {table: rows})`: its rows by column name; a row is a dict."""

    def rows(adapter, tables):
        sql = (ROOT / "sql" / "adapters" / f"{adapter}.sql").read_text(encoding="utf-8")
        bare.execute("DROP SCHEMA IF EXISTS trace CASCADE; CREATE SCHEMA trace")
        aliases = re.findall(r'trace\."(\w+)" AS (\w+)', sql)
        for table in dict.fromkeys(table for table, _ in aliases):
            names = [
                name
                for other, alias in aliases
                if other == table
                for name in re.findall(rf'\b{alias}\."(\w+)"', sql)
            ]
            columns = {name: "VARCHAR" if name in TEXT else "BIGINT" for name in names}
            kinds = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
            bare.execute(f'CREATE TABLE trace."{table}" ({kinds})')
            for row in tables.get(table, []):
                marks = ", ".join("?" for _ in columns)
                values = [row.get(name) for name in columns]
                bare.execute(f'INSERT INTO trace."{table}" VALUES ({marks})', values)
        found = bare.execute(sql)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    yield rows
    bare.execute("DROP SCHEMA IF EXISTS trace CASCADE")


@pytest.mark.parametrize(
    ("adapter", "table"),
    [
        ("api_call", "CUPTI_ACTIVITY_KIND_RUNTIME"),
        ("cuda_event", "CUPTI_ACTIVITY_KIND_CUDA_EVENT"),
        ("cuda_overhead", "CUPTI_ACTIVITY_KIND_OVERHEAD"),
        ("diagnostic", "DIAGNOSTIC_EVENT"),
        ("graph_event", "CUDA_GRAPH_EVENTS"),
        ("graph_exec", "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"),
        ("graph_node_event", "CUDA_GRAPH_NODE_EVENTS"),
        ("graph_node_event.until_3_7", "CUDA_GRAPH_EVENTS"),
        ("kernel", "CUPTI_ACTIVITY_KIND_KERNEL"),
        ("memcpy", "CUPTI_ACTIVITY_KIND_MEMCPY"),
        ("memset", "CUPTI_ACTIVITY_KIND_MEMSET"),
        ("nvtx", "NVTX_EVENTS"),
        ("osrt_call", "OSRT_API"),
        ("overhead", "PROFILER_OVERHEAD"),
        ("process_info", "PROCESSES"),
        ("sched_event", "SCHED_EVENTS"),
        ("sync", "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION"),
        ("thread_name", "ThreadNames"),
    ],
)
def test_a_process_is_the_global_id_without_its_24_bits_of_thread(adapted, adapter, table):
    process = (7 << 24) + 4711
    ids = {"globalPid": process << 24, "globalTid": (process << 24) + 12}
    (row,) = adapted(adapter, {table: [ids]})
    assert row["process"] == process
    assert row.get("thread", ids["globalTid"]) == ids["globalTid"]


def test_an_event_of_a_graph_is_no_node_before_3_8(adapted):
    assert adapted("graph_event.until_3_7", {"CUDA_GRAPH_EVENTS": [{"globalTid": 1}]}) == []


def names(*pairs):
    return [{"name": name, "value": value} for name, value in pairs]


def test_a_diagnostic_names_nobody(adapted):
    text = "alice at node7.cluster.example, node7, bob, build9, carol, ab, host of /home/x/y and Q"
    found = adapted(
        "diagnostic",
        {
            "DIAGNOSTIC_EVENT": [{"timestamp": 5, "source": 1, "severity": 2, "text": text}],
            "TARGET_INFO_SYSTEM_ENV": names(("Hostname", "node7.cluster.example"), ("Os", "host")),
            "META_DATA_EXPORT": names(
                ("EXPORT_HOST", "build9"), ("EXPORT_USER", "ab"), ("X", "of")
            ),
            "EXPORT_META_DATA": names(("EXPORT_USER", "bob"), ("Y", "host")),
            "META_DATA_CAPTURE": names(("PROCESS_12:USER_NAME", "alice"), ("USER_NAME", "carol")),
        },
    )
    assert [(row["time_ns"], row["source"], row["severity"]) for row in found] == [(5, 1, 2)]
    assert found[0]["text"] == (
        "<name> at <name>, <name>, <name>, <name>, carol, ab, host of <path> and Q"
    )


def test_a_diagnostic_loses_the_longer_of_two_names_first(adapted):
    found = adapted(
        "diagnostic",
        {
            "DIAGNOSTIC_EVENT": [{"text": "bobby and bob"}, {"text": None}],
            "META_DATA_EXPORT": names(("EXPORT_USER", "bob"), ("EXPORT_HOST", "bobby")),
        },
    )
    assert [row["text"] for row in found] == ["<name> and <name>", None]


def test_of_the_environment_only_versions_are_read(adapted):
    found = adapted(
        "system_env",
        {
            "TARGET_INFO_SYSTEM_ENV": names(
                ("TargetInstallDir", "/opt/nvidia/nsight-systems/2026.1.3/target"),
                ("OsDescription", "Linux 6"),
                ("OsDescription", "Linux 6"),
                ("Hostname", "node7"),
            )
        },
    )
    assert sorted((row["name"], row["value"]) for row in found) == [
        ("CaptureVersion", "2026.1.3"),
        ("OsDescription", "Linux 6"),
    ]


@pytest.mark.parametrize(
    ("name", "program"),
    [
        ("/usr/bin/python3 train.py --x", "python3"),
        ("  python", "python"),
        (r"C:\Program Files\app\Run.EXE --flag", "Run.EXE"),
        ("", ""),
    ],
)
def test_of_a_process_only_the_program_is_read(adapted, name, program):
    (row,) = adapted("process_info", {"PROCESSES": [{"globalPid": 0, "pid": 5, "name": name}]})
    assert (row["process_pid"], row["name"]) == (5, program)


def test_a_thread_has_its_own_name_or_none(adapted):
    found = adapted(
        "thread_name",
        {
            "ThreadNames": [{"globalTid": 1, "nameId": 4}, {"globalTid": 2, "nameId": 9}],
            "StringIds": [{"id": 4, "value": "main"}, {"id": 5, "value": "other"}],
        },
    )
    assert sorted((row["thread"], row["name"]) for row in found) == [(1, "main"), (2, None)]


def test_a_text_of_a_range_is_its_own_or_the_one_it_names(adapted):
    ranges = [{"start": 1, "text": "own", "textId": 4}, {"start": 2, "textId": 4}, {"start": 3}]
    found = adapted("nvtx", {"NVTX_EVENTS": ranges, "StringIds": [{"id": 4, "value": "named"}]})
    assert [(row["start_ns"], row["text"]) for row in found] == [
        *[(1, "own"), (2, "named"), (3, None)],
    ]


def test_strings_that_may_hold_an_environment_or_a_file_are_left_out(adapted):
    texts = {
        1: "kernel",
        2: "/home/x",
        3: "PATH=x",
        4: r"C:\x",
        5: "a\0b",
        6: "output of a process",
        7: "name of its file",
        8: "a file that was read",
        9: None,
    }
    found = adapted(
        "string",
        {
            "StringIds": [{"id": at, "value": text} for at, text in texts.items()],
            "ProcessStreams": [{"contentId": 6, "filenameId": 7}],
            "ANALYSIS_FILE": [{"contentId": 8}],
        },
    )
    assert sorted(row["string_id"] for row in found) == [1, 9]


def test_a_type_of_an_event_has_its_own_name(adapted):
    found = adapted(
        "generic_event_type",
        {
            "GENERIC_EVENT_TYPES": [{"typeId": 1, "nameId": 4}, {"typeId": 2, "nameId": 9}],
            "StringIds": [{"id": 4, "value": "sched"}, {"id": 5, "value": "other"}],
        },
    )
    assert sorted(row["name"] or "-" for row in found) == ["-", "sched"]


def test_a_gpu_of_2020_meets_its_properties_in_the_bus(adapted):
    tables = {
        "TARGET_INFO_GPU": [
            {"deviceId": 0, "busLocation": "0000:af", "name": "a"},
            {"deviceId": 1, "busLocation": "0000:0B", "name": "b"},
            {"deviceId": 2, "busLocation": "0000:0c", "name": "c"},
        ],
        # a row for each process
        "TARGET_INFO_CUDA_GPU": [
            *[{"deviceId": 4, "pciBusId": "0000:0b", "numMultiprocessors": 80}] * 2,
            {"deviceId": 5, "pciBusId": "0000:AF", "numMultiprocessors": 60},
        ],
    }
    found = adapted("gpu.until_2020_4", tables)
    told = [(row["gpu_id"], row["name"], row["cuda_ordinal"], row["sm_count"]) for row in found]
    assert sorted(told) == [(0, "a", 5, 60), (1, "b", 4, 80), (2, "c", None, None)]


def test_an_ordinal_of_a_process_is_told_once(adapted):
    rows = [{"pid": 5, "cudaId": 0, "gpuId": 3}] * 2 + [{"pid": 5, "cudaId": 1, "gpuId": 3}]
    found = adapted("device_map", {"TARGET_INFO_CUDA_DEVICE": rows})
    told = [(row["process_pid"], row["device_ordinal"], row["gpu_id"]) for row in found]
    assert sorted(told) == [(5, 0, 3), (5, 1, 3)]


def test_a_board_is_told_by_the_first_digits_of_a_hash(adapted):
    uuids = ["GPU-1", "GPU-2", None]
    tables = {"TARGET_INFO_GPU": [{"id": at, "uuid": each} for at, each in enumerate(uuids)]}
    found = {row["gpu_id"]: row["board"] for row in adapted("gpu_identity", tables)}
    hashes = [hashlib.sha256(each.encode()).hexdigest()[:12] for each in uuids[:2]]
    assert found == {0: hashes[0], 1: hashes[1], 2: None}


def test_a_priority_of_a_stream_is_signed(adapted):
    given = {0: 0, 4294967295: -1, 4294967294: -2, 2147483647: 2147483647, 2147483648: -2147483648}
    rows = [{"streamId": at, "priority": each, "flag": 3} for at, each in enumerate(given)]
    found = adapted("cuda_stream", {"TARGET_INFO_CUDA_STREAM": [*rows, {"streamId": 9}]})
    assert [(row["stream_id"], row["priority"], row["flag"]) for row in found] == [
        *[(at, given[each], 3) for at, each in enumerate(given)],
        (9, None, None),
    ]


def test_a_payload_is_its_own_or_the_one_it_names(adapted):
    ranges = [
        {"jsonText": "own", "jsonTextId": 4},
        {"jsonTextId": 4},
        {"jsonTextId": 9},
        {},
        {"jsonText": "alone"},
    ]
    strings = [{"id": 4, "value": "named"}, {"id": 5, "value": "other"}]
    found = adapted("nvtx_payload", {"NVTX_EVENTS": ranges, "StringIds": strings})
    assert sorted((row["row_id"], row["payload"]) for row in found) == [
        *[(0, "own"), (1, "named"), (2, None), (4, "alone")],
    ]


def test_a_setting_of_a_capture_is_told_once_and_of_no_process(adapted):
    given = names(
        ("PROCESS_12:COLLECT_CUDA_TRACE", "true"),
        ("PROCESS_7:COLLECT_CUDA_TRACE", "true"),
        ("COLLECT_CUDA_TRACE", "false"),
        ("X_PROCESS_7:START_TRIGGER", "none"),
        ("PROCESS_7:PROCESS_8:START_TRIGGER", "none"),
        ("PROCESS_7:USER_NAME", "alice"),
        ("CUDA_GRAPH_TRACE_OPTIONS:MODE", "1"),
    )
    found = adapted("capture_info", {"META_DATA_CAPTURE": given})
    assert sorted((row["name"], row["value"]) for row in found) == [
        *[("COLLECT_CUDA_TRACE", "false"), ("COLLECT_CUDA_TRACE", "true")],
        ("CUDA_GRAPH_TRACE_OPTIONS:MODE", "1"),
    ]


def test_of_an_export_nobody_is_told(adapted):
    given = names(
        ("EXPORT_HOST", "node7"), ("EXPORT_LAZY", "1"), ("EXPORT_SCHEMA_VERSION", "3.1.2"),
        ("EXPORT_PARAM_LAZY", "0"), ("EXPORT_USER", "bob"),
    )  # fmt: skip
    (*new,) = adapted("export_info", {"META_DATA_EXPORT": given})
    assert [row["name"] for row in new] == ["EXPORT_SCHEMA_VERSION", "EXPORT_PARAM_LAZY"]
    # old exports say it without PARAM
    (*old,) = adapted("export_info.until_3_1", {"EXPORT_META_DATA": given})
    assert [(row["name"], row["value"]) for row in old] == [
        *[("EXPORT_PARAM_LAZY", "1"), ("EXPORT_SCHEMA_VERSION", "3.1.2")],
    ]


def test_a_metric_is_of_the_gpu_in_the_low_eight_bits(adapted):
    given = [{"typeId": (5 << 32) + 7 * 256 + 3, "value": 9}, {"typeId": 255}, {"typeId": 256}]
    found = adapted("gpu_metric", {"GPU_METRICS": given})
    assert [(row["gpu_id"], row["value"]) for row in found] == [
        *[(3, "9"), (255, None), (0, None)],
    ]


def test_a_kernel_has_the_longer_of_its_names(adapted):
    given = [{"demangledName": 1, "shortName": 2}, {"shortName": 2}, {"demangledName": 1}, {}]
    found = adapted("kernel", {"CUPTI_ACTIVITY_KIND_KERNEL": given})
    assert [(row["name_id"], row["short_name_id"]) for row in found] == [
        *[(1, 2), (2, 2), (1, None), (None, None)],
    ]


@pytest.mark.parametrize(
    ("text", "is_left"),
    [
        *[("/", False), ("a/b", True), (" /x", True), ("C:/x", True), ("CD:\\x", True)],
        *[("_X=", False), ("A1_=x", False), ("1A=x", True), ("a b=c", True), ("=x", True)],
        *[("a-b=c", True), ("z:\\", False), ("", True)],
    ],
)
def test_a_string_that_looks_like_a_path_or_a_setting_is_left_out(adapted, text, is_left):
    strings = [{"id": 1, "value": text}]
    others = {"ProcessStreams": [{"contentId": 2}, {"filenameId": 3}], "ANALYSIS_FILE": [{}]}
    assert len(adapted("string", {"StringIds": strings, **others})) == is_left


def test_a_diagnostic_names_no_path(adapted):
    texts = {
        r"read C:\Users\bob\x.nsys-rep, fine": "read <path>, fine",
        "in '/home/bob/a b/c/'; done": "in '<path> b<path>'; done",
        "and/or 5/7 /tmp/": "and/or 5/7 <path>",
        "D:/x: y": "D:/x: y",
        "see //host/share:9": "see <path>:9",
    }
    rows = [{"text": text, "globalPid": 9 << 24} for text in texts]
    found = adapted("diagnostic", {"DIAGNOSTIC_EVENT": rows})
    assert [row["text"] for row in found] == [*texts.values()]
    assert {row["process"] for row in found} == {9}


def test_a_diagnostic_tells_no_command_and_no_value(adapted):
    texts = {
        "HF_TOKEN=x set, A=, 'B_1=\"c d\" e'": "HF_TOKEN=<value> set, A=<value> 'B_1=<value> e'",
        "SECRET: abc; KEY = 'a \\' b' c": "SECRET: <value> KEY = <value> c",
        '{"WANDB_API_KEY": "a b", "x": 1}': '{"WANDB_API_KEY": <value>, "x": 1}',
        "my-token=1 --api-key 2 x": "my-token=<value> --api-key <value> x",
        'command "a \\" b" ended, `c`': "command <command> ended, `c`",
        "arguments: ['a', 'b'] and": "arguments: [<command>] and",
        "Command line: a b\nc": "Command line: <command>\nc",
        "the 'nsys status' command to": "the 'nsys status' command to",
        "invalid argument (1), key 5, KEYBOARD 5": "invalid argument (1), key 5, KEYBOARD 5",
        "redis://u:p/w@h:9/0 https://x/y": "redis:<path>:9/0 https:<path>",
        "~/x ~bob/y ./z ../a $HOME/b ${T}/c %TEMP%\\d": " ".join(["<path>"] * 7),
        "~5/s, e.g./i.e.": "~5/s, e.g./i.e.",
    }
    found = adapted("diagnostic", {"DIAGNOSTIC_EVENT": [{"text": text} for text in texts]})
    assert [row["text"] for row in found] == [*texts.values()]


def test_a_diagnostic_keeps_names_of_two_letters(adapted):
    found = adapted(
        "diagnostic",
        {
            "DIAGNOSTIC_EVENT": [{"text": "ab abc other.x other"}],
            "META_DATA_EXPORT": names(
                ("EXPORT_USER", "ab"), ("EXPORT_HOST", "abc"), ("EXPORT_ARCH", "other.x")
            ),
            "EXPORT_META_DATA": names(("EXPORT_PLATFORM", "other.x")),
            "TARGET_INFO_SYSTEM_ENV": names(("Hostname", "other.y.z"), ("Os", "abc")),
            "META_DATA_CAPTURE": names(
                ("PROCESS_1:USER_NAMES", "x"), ("A:PROCESS_1:USER_NAME", "y")
            ),
        },
    )
    assert [row["text"] for row in found] == ["ab <name> <name>.x <name>"]
