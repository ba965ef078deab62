"""Determines what a preprocess query may read and call; it neither reads its text nor runs it.

The one place that defines it: a check of the controls judges by it what the text names, and a
probe judges what Spark has parsed of it.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from harness.platform.sql_names import parts_of
from harness.platform.text import escaped

#: The name under which a query finds the rows that are new.
NEW_DATA = "sensor_new_data"
#: Where the configuration allows more.
SETTING = "sensing.queries_may_read of heartbeat.yml"

#: The parts of a name, in lower case.
Name = tuple[str, ...]

#: Functions that make rows of their arguments alone.
ROW_MAKERS = frozenset(
    {
        "explode",
        "explode_outer",
        "inline",
        "inline_outer",
        "json_tuple",
        "posexplode",
        "posexplode_outer",
        "range",
        "stack",
        "variant_explode",
        "variant_explode_outer",
    }
)
_ALLOWED_GROUPS = {
    "operators": """
        ! != % & * + - / < << <= <=> <> = == > >= >> >>> ^ and between case div in not or
        when | || ~
    """,
    "aggregates": """
        any any_value approx_count_distinct approx_percentile array_agg avg bool_and
        bool_or collect_list collect_set corr count count_if covar_pop covar_samp every
        first first_value grouping grouping_id histogram_numeric kurtosis last last_value
        listagg max max_by mean median min min_by mode percentile percentile_approx
        percentile_cont percentile_disc skewness some std stddev stddev_pop stddev_samp
        string_agg sum try_avg try_sum var_pop var_samp variance
    """,
    "windows": """
        cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number
        session_window window window_time
    """,
    "regular expressions": """
        ilike like regexp regexp_count regexp_extract regexp_extract_all regexp_instr
        regexp_like regexp_replace regexp_substr rlike
    """,
    "JSON and CSV": """
        from_csv from_json get_json_object json_array_length json_object_keys json_tuple
        schema_of_csv schema_of_json to_csv to_json
    """,
    "hashes, encodings, URLs, UTF-8": """
        base64 crc32 decode encode hash hex is_valid_utf8 make_valid_utf8 md5 parse_url
        sha sha1 sha2 to_binary try_parse_url try_to_binary try_url_decode
        try_validate_utf8 unbase64 unhex url_decode url_encode validate_utf8 xxhash64
    """,
    "bits": """
        bit_and bit_count bit_get bit_or bit_xor getbit shiftleft shiftright
        shiftrightunsigned
    """,
    "casts and conditions": """
        assert_true bigint binary boolean cast coalesce decimal double equal_null float
        greatest if ifnull int isnan isnotnull isnull least nanvl nullif nullifzero nvl
        nvl2 raise_error smallint string tinyint to_number try_to_number typeof zeroifnull
    """,
    "mathematics": """
        abs acos acosh asin asinh atan atan2 atanh bin bround cbrt ceil ceiling conv cos
        cosh cot csc degrees e exp expm1 factorial floor hypot ln log log10 log1p log2 mod
        negative pi pmod positive pow power radians regr_avgx regr_avgy regr_count
        regr_intercept regr_r2 regr_slope regr_sxx regr_sxy regr_syy rint round sec sign
        signum sin sinh sqrt tan tanh try_add try_divide try_mod try_multiply try_subtract
        width_bucket
    """,
    "dates and times": """
        add_months convert_timezone curdate current_date current_time current_timestamp
        date date_add date_diff date_format date_from_unix_date date_part date_sub
        date_trunc dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear
        extract from_unixtime from_utc_timestamp hour last_day localtimestamp make_date
        make_dt_interval make_interval make_time make_timestamp make_timestamp_ltz
        make_timestamp_ntz make_ym_interval minute month monthname months_between next_day
        now quarter second time time_diff time_trunc timestamp timestamp_micros
        timestamp_millis timestamp_seconds to_date to_time to_timestamp to_timestamp_ltz
        to_timestamp_ntz to_unix_timestamp to_utc_timestamp try_make_interval
        try_make_timestamp try_make_timestamp_ltz try_make_timestamp_ntz try_to_date
        try_to_time try_to_timestamp unix_date unix_micros unix_millis unix_seconds
        unix_timestamp weekday weekofyear year
    """,
    "arrays, maps, structs, rows of them": """
        aggregate array array_append array_compact array_contains array_distinct
        array_except array_insert array_intersect array_join array_max array_min
        array_position array_prepend array_remove array_size array_sort array_union
        arrays_overlap arrays_zip cardinality element_at exists explode explode_outer
        filter flatten forall get inline inline_outer map map_concat map_contains_key
        map_entries map_filter map_from_arrays map_from_entries map_keys map_values
        map_zip_with named_struct posexplode posexplode_outer range reduce size slice
        sort_array stack str_to_map struct transform transform_keys transform_values
        try_element_at variant_explode variant_explode_outer zip_with
    """,
    "text": """
        ascii bit_length btrim char char_length character_length chr collate collation
        concat concat_ws contains elt endswith find_in_set format_number format_string
        initcap instr lcase left len length levenshtein locate lower lpad ltrim luhn_check
        mask octet_length overlay position printf quote replace reverse right rpad rtrim
        sentences soundex split split_part startswith substr substring substring_index
        to_char to_varchar translate trim trunc ucase upper
    """,
}
#: The functions that a query may call: of their arguments alone, and of the present time.
ALLOWED = frozenset(name for names in _ALLOWED_GROUPS.values() for name in names.split())

_REFUSED_GROUPS = {
    "reads files, runs code or loads definitions": """
        cloud_files event_log from_avro from_protobuf from_xml http_request identifier
        input_file_block_length input_file_block_start input_file_name java_method
        list_secrets python_worker_logs reflect remote_query schema_of_avro schema_of_xml
        secret table_changes to_avro to_protobuf to_xml try_reflect try_secret
        vector_search xpath xpath_boolean xpath_double xpath_float xpath_int xpath_long
        xpath_number xpath_short xpath_string
    """,
    "names the session, not the rows": """
        collations current_catalog current_database current_schema current_timezone
        current_user monotonically_increasing_id session_user spark_partition_id
        sql_keywords user version
    """,
    "gives another answer each time": """
        rand randn random randstr shuffle uniform uuid
    """,
    "makes values of any size": """
        array_repeat repeat sequence space
    """,
    "carries keys": """
        aes_decrypt aes_encrypt try_aes_decrypt
    """,
    "is of sketches, variants or places": """
        approx_top_k approx_top_k_accumulate approx_top_k_combine approx_top_k_estimate
        bitmap_and_agg bitmap_bit_position bitmap_bucket_number bitmap_construct_agg
        bitmap_count bitmap_or_agg count_min_sketch hll_sketch_agg hll_sketch_estimate
        hll_union hll_union_agg is_variant_null kll_sketch_agg_bigint
        kll_sketch_agg_double kll_sketch_agg_float kll_sketch_get_n_bigint
        kll_sketch_get_n_double kll_sketch_get_n_float kll_sketch_get_quantile_bigint
        kll_sketch_get_quantile_double kll_sketch_get_quantile_float
        kll_sketch_get_rank_bigint kll_sketch_get_rank_double kll_sketch_get_rank_float
        kll_sketch_merge_bigint kll_sketch_merge_double kll_sketch_merge_float
        kll_sketch_to_string_bigint kll_sketch_to_string_double kll_sketch_to_string_float
        parse_json schema_of_variant schema_of_variant_agg st_asbinary st_geogfromwkb
        st_geomfromwkb st_setsrid st_srid theta_difference theta_intersection
        theta_intersection_agg theta_sketch_agg theta_sketch_estimate theta_union
        theta_union_agg to_variant_object try_parse_json try_variant_get variant_get
    """,
}
#: Functions of Spark and Databricks that a query may not call, each with the reason.
REFUSED = {name: reason for reason, names in _REFUSED_GROUPS.items() for name in names.split()}
#: Families of Databricks that call models and read files.
_REACH_OUT_STARTS = ("ai_", "read_")
_LONGEST_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What one query names, apart from its own CTEs and columns."""

    relations: frozenset[Name] = frozenset()
    #: Functions that stand where a table may.
    row_makers: frozenset[Name] = frozenset()
    functions: frozenset[Name] = frozenset()
    #: What else reaches out of a query, in words.
    others: frozenset[str] = frozenset()


def name_of(parts: Iterable[object]) -> Name:
    """Return the parts of a name as names are compared: whatever their case."""
    return tuple(str(part).lower() for part in parts)


def is_refused(name: str) -> bool:
    """Return whether a function of this name is known, and may not be called."""
    return name.lower() in REFUSED or name.lower().startswith(_REACH_OUT_STARTS)


def unread(use: Use, may_read: Collection[str]) -> list[str]:
    """Return, in one phrase each, what the query reads and may not.

    Args:
        use: What the query names.
        may_read: Tables and views that the configuration allows.
    """
    allowed = {(NEW_DATA,), *(name_of(parts_of(name)) for name in may_read)}
    tables = [
        f"reads {_shown(name)}; allowed are {NEW_DATA} and the tables that {SETTING} names"
        for name in sorted(use.relations - allowed)
    ]
    makers = {name for name in use.row_makers if name[-1] not in ROW_MAKERS or len(name) > 1}
    return tables + [
        f"reads rows of the function {_shown(name)}; allowed there are"
        f" {', '.join(sorted(ROW_MAKERS))}"
        for name in sorted(makers)
    ]


def uncalled(use: Use) -> list[str]:
    """Return, in one phrase each, what the query calls and may not."""
    phrases = sorted(use.others)
    for name in sorted(use.functions):
        if len(name) > 1:
            phrases.append(f"calls {_shown(name)}; only functions without a schema are allowed")
        elif name[0] in REFUSED:
            phrases.append(f"calls {_shown(name)}, which {REFUSED[name[0]]}; do without it")
        elif is_refused(name[0]):
            phrases.append(f"calls {_shown(name)}, which reaches out of the query; do without it")
        elif name[0] not in ALLOWED:
            close = get_close_matches(name[0], ALLOWED, n=1, cutoff=0.7)
            hint = f"; perhaps {close[0]} is meant" if close else "; do without it"
            phrases.append(f"calls {_shown(name)}, which is not among the allowed functions{hint}")
    return phrases


def _shown(name: Name) -> str:
    text = ".".join(name)
    cut = text if len(text) <= _LONGEST_SHOWN else f"{text[:_LONGEST_SHOWN]}…"
    return f"'{escaped(cut)}'"
