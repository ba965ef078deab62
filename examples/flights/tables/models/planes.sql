select
    * except (_change_type),
    _change_type = 'delete' as is_gone
from {{ heartbeat.changed_rows(source('bronze', 'planes'), keys='tailnum') }} as changed
