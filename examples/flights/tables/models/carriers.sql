select * from {{ source('bronze', 'airlines') }}
