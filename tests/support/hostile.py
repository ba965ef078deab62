"""Hostile text: what a query, a cell, a file's name or an answer may hold."""

#: Queries that read the new rows and nothing else, however they go about it.
WITHIN = (
    "select * from sensor_new_data where id in (select max(id) from sensor_new_data)",
    "with a as (select * from sensor_new_data), b as (select * from a) select * from b",
    "with recursive r(n) as (select 1 union all select n + 1 from r where n < 5)"
    " select * from r, sensor_new_data",
    "select * from (with a as (select 1 as x) select * from a), sensor_new_data",
    "select * from sensor_new_data cross join range(3)",
    "select * from sensor_new_data, values (1), (2) as t(a)",
    "select * from sensor_new_data lateral view explode(items) t as item",
    "select transform(items, x -> x + 1) from sensor_new_data",
    "select * from `sensor_new_data` as n where n.note = 'select * from sales.orders; drop table x'",
    "select * from sensor_new_data -- from sales.orders",
    "select /* from sales.orders */ * from sensor_new_data",
    "select * from sensor_new_data tablesample (10 percent)",
    "select * from sensor_new_data where load_date >= current_date() - 7",
    "select * from sensor_new_data where cast(a as decimal(10, 2)) > 1 and b in (1, 2)",
    "select max(a), row_number() over (partition by b order by c) from sensor_new_data group by b",
    "select * from sensor_new_data where regexp_like(a, 'x+') and b rlike 'y'",
    "select * from sensor_new_data where a > coalesce(b, '1900-01-01')",
    "select * from sensor_new_data where get_json_object(a, '$.status') = 'closed'",
    "select window(changed_at, '1 hour').start, count(*) from sensor_new_data group by 1",
    "select count(*) filter (where a > 1) from sensor_new_data group by b having count(*) > 0",
    # For Spark the first comment goes on in the next line, and the second one never begins.
    "select * from sensor_new_data --\\\n/*\n, sales.orders -- */",
)

#: Queries that read a table, a folder or a file besides the new rows.
READING_MORE = (
    "select * from sensor_new_data, sales.orders",
    "select * from sensor_new_data, orders",
    "select * from sensor_new_data join sales.orders using (id)",
    "select * from sensor_new_data union all select * from sales.orders",
    "select * from sensor_new_data except select * from main.sales.orders",
    "select * from sensor_new_data where id in (select id from sales.orders)",
    "select * from sensor_new_data where exists (select 1 from sales.orders)",
    "select (select max(id) from sales.orders) from sensor_new_data",
    "select * from sensor_new_data where id > (select 1 from sales.orders) + 1",
    "with a as (select * from sales.orders) select * from a, sensor_new_data",
    # A CTE is seen from where it stands and below, and from those after it.
    "with a as (select * from orders), orders as (select 1) select * from a, sensor_new_data",
    "select * from (with orders as (select 1) select * from orders), orders, sensor_new_data",
    "with orders as (select * from orders) select * from orders, sensor_new_data",
    # Only a table has versions, so this is no CTE.
    "with recursive orders(n) as (select 1 from orders version as of 3) select * from"
    " sensor_new_data",
    "with orders as (select 1) select * from sensor_new_data, orders timestamp as of '2026-01-01'",
    "select * from sensor_new_data, lateral (select * from sales.orders)",
    "select * from sensor_new_data, sales.orders version as of 3",
    "select * from sensor_new_data, global_temp.orders",
    "select * from sensor_new_data, parquet.`/etc/secrets`",
    "select * from sensor_new_data, delta.`s3://other/place`",
    "select * from sensor_new_data, text.`/etc/passwd`",
    "select * from sensor_new_data, csv.`../../secrets.csv`",
    "select * from sensor_new_data, `json`.`/x`",
    "select * from sensor_new_data, read_files('/etc/passwd', format => 'text')",
    "select * from sensor_new_data, table_changes('sales.orders', 1)",
    "select * from sensor_new_data, cloud_files('/x', 'json')",
    "select * from sensor_new_data, identifier('sales.' || 'orders')",
    "select * from sensor_new_data -- */\n, sales.orders /* -- */",
    "select * from sensor_new_data /* a /* b */ c */ , sales.orders",
    "select * from sensor_new_data) union all (select 1 from sales.orders",
    "from sensor_new_data |> union all (select * from sales.orders)",
    "select * from sensor_new_data where exists (table orders)",
    "select * from sensor_new_data where id in (from orders)",
    "select * from (map id using 'cat /etc/passwd' as (x) from sensor_new_data)",
)

#: Queries that run code, change something, or reach what is outside of SQL.
REACHING_OUT = (
    "select reflect('java.lang.System', 'exit', 1) from sensor_new_data",
    "select REFLECT('java.lang.System', 'getenv', 'HOME') from sensor_new_data",
    "select `java_method`('java.lang.System', 'getenv', 'HOME') from sensor_new_data",
    "select try_reflect ('a', 'b') from sensor_new_data",
    "select /* x */ reflect /* y */ ('a', 'b') from sensor_new_data",
    "select system.builtin.reflect('a', 'b') from sensor_new_data",
    "select sales.spend(id) from sensor_new_data",
    "select * from sensor_new_data lateral view java_method('a', 'b') t as x",
    "select * from sensor_new_data where id = (select reflect('a', 'b'))",
    "select * from sensor_new_data order by reflect('a', 'b')",
    "select secret('scope', 'key') from sensor_new_data",
    "select try_secret('scope', 'key') from sensor_new_data",
    "select ai_query('model', note) from sensor_new_data",
    "select http_request(conn => 'x', method => 'POST') from sensor_new_data",
    "select from_protobuf(a, 'Message', '/etc/passwd') from sensor_new_data",
    "select 1 from sensor_new_data where from_xml(c, 'a int',"
    " map('rowValidationXSDPath', '/etc/passwd')).a = 1",
    "select `From_XML`(c, 'a int', map('rowValidationXSDPath', 'http://x/y')) from sensor_new_data",
    "select to_xml(named_struct('a', 1)) from sensor_new_data",
    "select schema_of_xml('<a/>') from sensor_new_data",
    "select xpath(c, 'a/b') from sensor_new_data",
    "select xpath_string(c, 'a/b') from sensor_new_data",
    "select current_user() from sensor_new_data",
    "select input_file_name() from sensor_new_data",
    "select repeat('a', 2000000000) from sensor_new_data",
    "select explode(sequence(1, 1000000000000)) from sensor_new_data",
    "select transform(id) using 'cat /etc/passwd' as (a) from sensor_new_data",
    "select * from sensor_new_data; drop table sales.orders",
    "insert into sales.orders select * from sensor_new_data",
    "create table x as select * from sensor_new_data",
    "with a as (select * from sensor_new_data) insert into x select * from a",
    "from sensor_new_data insert into sales.orders select *",
    "drop table sales.orders",
    "delete from sensor_new_data",
    "set spark.sql.variable.substitute = true",
    "add jar '/tmp/x.jar'",
    "use sales",
    "execute immediate 'drop table x'",
    "begin drop table x; end",
    "call system.sync('x')",
    "cache table x as select * from sensor_new_data",
)

#: Queries into which Spark would write a variable of the process.
WITH_VARIABLES = (
    "select raise_error('${env:HOME}') from sensor_new_data",
    "select * from sensor_new_data where a = '${spark.app.name}'",
    "select * from ${system:user.name}.sensor_new_data",
)

#: Text that would do harm if anybody took it for more than text.
QUOTES = 'it\'s "quoted" `so`, \\\' and so \\" and \\'
JINJA = "{{ 1 / 0 }} {% raw %} {# {% do exceptions.raise_compiler_error('x') %}"
SQL = "x'); drop table heartbeat.ledger_runs; -- /*"
VARIABLE = "${env:HOME} ${system:user.name} ${spark.app.name} $HOME `id` $(id)"
PATHS = "../../../etc/passwd"
FORMATS = "%s %d %(x)s {0} {x!r} [bold red]x[/] :smile:"
FORMULA = "=cmd|' /C calc'!A0"
PRINTABLE = (QUOTES, JINJA, SQL, VARIABLE, PATHS, FORMATS, FORMULA)

#: Text that would move a cursor, hide, turn or forge what is shown.
ESCAPES = "\x1b[2J\x1b]0;owned\x07\x1b[31m"
CLEARED = "\rall is well\b\b\b\b"
C1 = "\x9b2J\x85next"
TURNED = "\u202egnirts a si siht\u2066\u200f\u061c"
HIDDEN = "a\u200bb\u2060c\ufeffd\U000e0041"
LINES = "first\nerror: second\u2028third\u2029fourth\x0bfifth\x0csixth"
NUL = "before\x00after"
UNSEEN = (ESCAPES, CLEARED, C1, TURNED, HIDDEN, LINES, NUL)

#: Half a character: text in Python and JSON, and no text in UTF-8.
HALF = "half \ud800 a character"
#: Every kind at once.
EVERYTHING = " ".join((*PRINTABLE, *UNSEEN, HALF))
