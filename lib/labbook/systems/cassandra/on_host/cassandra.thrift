// The calls of Cassandra's Thrift interface that the studies use; the same for 0.7 and 1.0.
// Field numbers are Cassandra's own; fields that nobody here sets are left out.

enum ConsistencyLevel { ONE = 1, QUORUM = 2, ALL = 5, ANY = 6 }

struct Column { 1: required binary name, 2: optional binary value, 3: optional i64 timestamp }
struct ColumnOrSuperColumn { 1: optional Column column }
struct Mutation { 1: optional ColumnOrSuperColumn column_or_supercolumn }
struct ColumnPath { 3: required string column_family, 5: optional binary column }
struct ColumnParent { 3: required string column_family }
struct SliceRange {
    1: required binary start,
    2: required binary finish,
    3: required bool reversed,
    4: required i32 count
}
struct SlicePredicate { 1: optional list<binary> column_names, 2: optional SliceRange slice_range }

struct KeyRange { 1: optional binary start_key, 2: optional binary end_key, 5: required i32 count }
struct KeySlice { 1: required binary key, 2: required list<ColumnOrSuperColumn> columns }

struct CfDef {
    1: required string keyspace,
    2: required string name,
    12: optional double read_repair_chance,
    16: optional i32 id,
    17: optional i32 min_compaction_threshold,
    18: optional i32 max_compaction_threshold,
    32: optional map<string, string> compression_options
}
struct KsDef {
    1: required string name,
    2: required string strategy_class,
    3: optional map<string, string> strategy_options,
    4: optional i32 replication_factor,
    5: required list<CfDef> cf_defs
}

struct TokenRange {
    1: required string start_token,
    2: required string end_token,
    3: required list<string> endpoints
}

exception InvalidRequestException { 1: required string why }
exception NotFoundException {}
exception UnavailableException {}
exception TimedOutException {}

service Cassandra {
    void set_keyspace(1: required string keyspace) throws (1: InvalidRequestException ire),

    ColumnOrSuperColumn get(
        1: required binary key, 2: required ColumnPath column_path,
        3: required ConsistencyLevel consistency_level)
        throws (1: InvalidRequestException ire, 2: NotFoundException nfe,
                3: UnavailableException ue, 4: TimedOutException te),

    map<binary, list<ColumnOrSuperColumn>> multiget_slice(
        1: required list<binary> keys, 2: required ColumnParent column_parent,
        3: required SlicePredicate predicate, 4: required ConsistencyLevel consistency_level)
        throws (1: InvalidRequestException ire, 2: UnavailableException ue,
                3: TimedOutException te),

    void insert(
        1: required binary key, 2: required ColumnParent column_parent, 3: required Column column,
        4: required ConsistencyLevel consistency_level)
        throws (1: InvalidRequestException ire, 2: UnavailableException ue,
                3: TimedOutException te),

    void batch_mutate(
        1: required map<binary, map<string, list<Mutation>>> mutation_map,
        2: required ConsistencyLevel consistency_level)
        throws (1: InvalidRequestException ire, 2: UnavailableException ue,
                3: TimedOutException te),

    list<KeySlice> get_range_slices(
        1: required ColumnParent column_parent, 2: required SlicePredicate predicate,
        3: required KeyRange range, 4: required ConsistencyLevel consistency_level)
        throws (1: InvalidRequestException ire, 2: UnavailableException ue,
                3: TimedOutException te),

    void remove(
        1: required binary key, 2: required ColumnPath column_path, 3: required i64 timestamp,
        4: required ConsistencyLevel consistency_level)
        throws (1: InvalidRequestException ire, 2: UnavailableException ue,
                3: TimedOutException te),

    string describe_version(),
    list<TokenRange> describe_ring(1: required string keyspace)
        throws (1: InvalidRequestException ire),
    map<string, list<string>> describe_schema_versions() throws (1: InvalidRequestException ire),
    KsDef describe_keyspace(1: required string keyspace)
        throws (1: NotFoundException nfe, 2: InvalidRequestException ire),
    string system_add_keyspace(1: required KsDef ks_def) throws (1: InvalidRequestException ire),
    string system_update_column_family(1: required CfDef cf_def)
        throws (1: InvalidRequestException ire)
}
