/**
 * Proof of life in SQL. An instance of the advisory mode holds a session's advisory lock on a number of its own, and its
 * rows carry the number. Whoever gets that lock, if only shared and for the length of a transaction, knows that the
 * session is gone. Rows without a number live by their time alone.
 *
 * Advisory locks are known to a whole database by two integers. The first is the oid of a sequence of the schema, so
 * that two schemas never meet; the second comes from that sequence.
 */
const CLASS = `'belfry.proofs'::regclass::oid::integer`

/** Takes a number, and the lock on it if nobody else has it by some strange chance. */
export const TAKE_NUMBER = `select n, pg_try_advisory_lock(${CLASS}, n) as taken, pg_backend_pid() as pid
  from (select nextval('belfry.proofs')::integer as n) numbers`

export const IS_GONE = 'select belfry.session_is_gone($1)'

/** The server is to notice soon that the other end has vanished, and not to end a session because it is quiet. */
export const KEEP_SESSION = `select set_config(s.name, wanted.value, false) from pg_settings s join (values
    ('idle_session_timeout', '0'), ('tcp_keepalives_idle', '5'), ('tcp_keepalives_interval', '2'),
    ('tcp_keepalives_count', '3')) wanted (name, value) on wanted.name = s.name`
