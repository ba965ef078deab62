select * except (_change_type)
from {{ heartbeat.changed_rows(source('bronze', 'flights')) }} as changed
where _change_type = 'insert'
