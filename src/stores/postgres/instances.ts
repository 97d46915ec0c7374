import type { BeatRequest, BeatResult, Instance, InstanceInfo, JobInfo } from '../../core/instance.js'
import type { DeclaredSet } from '../../core/store.js'
import type { Database } from './connection/database.js'
import { operation } from './connection/sql-function.js'
import { WAKE_RUNS } from './connection/wakes.js'
import { runNumber } from './run-row.js'
import { PICKED, pickRuns } from './take-runs.js'

const JOIN_FUNCTION = operation(
  `join_instance(v_id text, v_info text, v_app text, v_declarations text, v_lease bigint, v_jobs text[],
    v_job_infos text[], v_proof integer)`,
  'bigint',
  `
declare
  v_us bigint;
  v_now bigint;
  v_dead boolean;${PICKED}
begin
  perform belfry.durable();
  select dead into v_dead from belfry.instances where id = v_id for update;
  v_us := belfry.now_us();
  v_now := v_us / 1000;
  if v_dead then
    ${pickRuns('select * from belfry.running_of(v_id)')};
    perform belfry.take_all(v_runs, v_tokens, true, v_us);
    delete from belfry.claims where instance = v_id;
    delete from belfry.instances where id = v_id;
  end if;
  insert into belfry.instances (id, info, app, declarations, joined_at, beat_at, expires_at, proof)
    values (v_id, v_info, v_app, v_declarations, v_now, v_now, v_now + v_lease, v_proof)
    on conflict (id) do update set beat_at = excluded.beat_at, expires_at = excluded.expires_at, proof = excluded.proof;
  insert into belfry.jobs as j (name, info) select * from unnest(v_jobs, v_job_infos) as g(name, info) order by g.name
    on conflict (name) do update set info = excluded.info where j.info <> excluded.info;
  update belfry.declarations set alive_at = v_now where app = v_app and hash = v_declarations;
  return v_now;
end`,
)

const JOIN = 'select belfry.join_instance($1, $2, $3, $4, $5, $6, $7, $8)'

export async function joinInstance(
  db: Database,
  info: InstanceInfo,
  leaseMs: number,
): Promise<{ readonly now: number }> {
  db.lease.heard(leaseMs)
  const { id, app = null, declarations = null } = info
  const jobs = [...new Map(info.jobs.map((job) => [job.name, job])).values()]
  const texts = [jobs.map(({ name }) => name), jobs.map((job) => JSON.stringify(job))]
  const values = [id, JSON.stringify(info), app, declarations, Math.ceil(leaseMs), ...texts]
  const [row] = await db.withProof((proof) => db.write(JOIN, [...values, proof], { patience: 'prompt' }))
  return { now: Number(row?.[0]) }
}

/**
 * Of a claim that was answered, and the instance knows nothing of it: the answer was lost. A set less a set: to look each
 * one up in an array takes seconds for an instance that runs 20,000 at a time.
 */
const UNHEARD = `select * from belfry.running_of(v_id, v_settled)
  where (id, token) not in (select * from unnest(v_listed, v_listed_tokens))`

/** Runs that go on for so long no claim has to pass over any more: they leave the index of what is ready, some at a time. */
const LONG_MS = 5_000
const MOST_LONG = 2_000
const PUT_OUT_OF_THE_WAY = `
  if cardinality(v_long) > 0 then
    update belfry.runs set state = 2 where id = any (array(select id from belfry.runs where id = any (v_long)
      and state = 1 and running and instance = v_id order by id limit ${MOST_LONG} for update skip locked));
  end if`

function ofClaim(columns: string): string {
  return `cross join lateral (select ${columns} from belfry.claims where instance = v_id and claim = g.claim limit 1) c`
}

/**
 * Claims of which nothing runs any more go, and those of which little does keep only that. None goes that was not there
 * before its runs were looked at: a claim may be carried out after its instance gave it up. Each is found by its number:
 * many small claims may have come since the last beat, and compared with each other they take seconds.
 */
const CLEAR_CLAIMS = `
  delete from belfry.claims where ctid = any (array(
    select c.row from (select unnest(v_answered) except select unnest(v_own_claims)) g (claim) ${ofClaim('ctid as row')}));
  update belfry.claims c set runs = g.runs from (
    select g.runs, c.row from (select claim, array_agg(id) as runs
      from unnest(v_own, v_own_claims) as o(id, claim) where claim <= v_settled group by claim) g
    ${ofClaim('ctid as row, cardinality(runs) as given')} where c.given > 2 * cardinality(g.runs)) g
    where c.ctid = g.row`

const BEAT_FUNCTION = operation(
  `beat(v_id text, v_lease bigint, v_listed bigint[], v_listed_tokens bigint[], v_settled bigint,
    out now_ms bigint, out alive boolean, out own text, out cancelled text, out wakes integer)`,
  'record',
  `
declare
  v_us bigint;
  v_app text;
  v_declarations text;
  v_own bigint[];
  v_own_claims bigint[];
  v_cancelled bigint[];
  v_long bigint[];
  v_answered bigint[];${PICKED}
begin
  perform belfry.durable();
  wakes := 0;
  v_answered := array(select claim from belfry.claims where instance = v_id and claim <= v_settled);
  ${pickRuns(UNHEARD)};
  select app, declarations into v_app, v_declarations from belfry.instances where id = v_id and not dead for no key update;
  alive := found;
  v_us := belfry.now_us();
  now_ms := v_us / 1000;
  if not alive then return; end if;
  -- Only now: what was taken from a late instance before its row was locked is not its own any more, and nothing is taken
  -- while it is. Each run is found by its number: by its instance, all that run there would be gone through for each.
  select coalesce(array_agg(r.id), '{}'), coalesce(array_agg(r.claim), '{}'),
      coalesce(array_agg(r.id) filter (where r.cancel), '{}'),
      coalesce(array_agg(r.id) filter (where r.state = 1 and r.started_at < v_us / 1000 - ${LONG_MS}), '{}')
    into v_own, v_own_claims, v_cancelled, v_long
    from unnest(v_listed, v_listed_tokens) as g(id, token) cross join lateral (
      select id, token, state, running, instance, claim, started_at, cancel from belfry.runs where id = g.id limit 1) r
    where r.token = g.token and r.running and r.instance = v_id;
  update belfry.instances set beat_at = now_ms, expires_at = now_ms + v_lease,
    last_claim = greatest(last_claim, v_settled) where id = v_id;
  -- Some may have been taken over meanwhile.
  if v_runs is not null then wakes := (select t.wakes from belfry.take_all(v_runs, v_tokens, false, v_us) t); end if;
  ${PUT_OUT_OF_THE_WAY};
  ${CLEAR_CLAIMS};
  update belfry.declarations set alive_at = now_ms where app = v_app and hash = v_declarations;
  own := array_to_json(v_own)::text;
  cancelled := array_to_json(v_cancelled)::text;
end`,
)

const BEAT = 'select now_ms, alive, own, cancelled, wakes from belfry.beat($1, $2, $3, $4, $5)'

export async function beatInstance(db: Database, request: BeatRequest): Promise<BeatResult> {
  const { instance, leaseMs, attempts, claimsSettled } = request
  db.lease.heard(leaseMs)
  const known = attempts.filter(({ run }) => runNumber(run) !== undefined)
  const values = [known.map(({ run }) => run), known.map(({ token }) => token), claimsSettled]
  const [row] = await db.write(BEAT, [instance, Math.ceil(leaseMs), ...values], { patience: 'prompt' })
  const now = Number(row?.[0])
  if (row?.[1] !== 't') return { alive: false, lost: attempts.map(({ run }) => run), cancel: [], now }
  db.announce(Number(row[4]))
  const own = new Set((JSON.parse(row[2] ?? '[]') as number[]).map(String))
  const cancel = (JSON.parse(row[3] ?? '[]') as number[]).map(String)
  return { alive: true, lost: attempts.filter(({ run }) => !own.has(run)).map(({ run }) => run), cancel, now }
}

const LEAVE_FUNCTION = operation(
  'leave(v_id text)',
  'void',
  `
declare${PICKED}
begin
  perform belfry.durable();
  perform 1 from belfry.instances where id = v_id for update;
  if not found then return; end if;
  ${pickRuns('select * from belfry.running_of(v_id)')};
  perform belfry.take_all(v_runs, v_tokens, false, belfry.now_us());
  delete from belfry.claims where instance = v_id;
  delete from belfry.instances where id = v_id;
end`,
)

const LEAVE = 'select belfry.leave($1)'

export async function leaveInstance(db: Database, id: string): Promise<void> {
  await db.write(LEAVE, [id])
  db.announce(WAKE_RUNS)
}

export const INSTANCE_FUNCTIONS = [JOIN_FUNCTION, BEAT_FUNCTION, LEAVE_FUNCTION].join('\n')

const LIST = 'select info, joined_at, beat_at, expires_at from belfry.instances where not dead order by seq'

export async function listInstances(db: Database): Promise<Instance[]> {
  return (await db.read(LIST)).map(([info, joinedAt, beatAt, expiresAt]) => ({
    ...(JSON.parse(info ?? '{}') as InstanceInfo),
    ...{ joinedAt: Number(joinedAt), beatAt: Number(beatAt), expiresAt: Number(expiresAt) },
  }))
}

const JOBS = 'select info from belfry.jobs order by seq'

export async function listJobs(db: Database): Promise<JobInfo[]> {
  return (await db.read(JOBS)).map(([info]) => JSON.parse(info ?? '{}') as JobInfo)
}

const DECLARED = `select hash, release, schedules, first_seen_at, alive_at from belfry.declarations where app = $1
  order by seq`

export async function listDeclared(db: Database, app: string): Promise<DeclaredSet[]> {
  return (await db.read(DECLARED, [app])).map(([hash, release, schedules, firstSeenAt, aliveAt]) => ({
    ...{ hash: hash ?? '', schedules: JSON.parse(schedules ?? '[]') as string[] },
    ...{ firstSeenAt: Number(firstSeenAt), aliveAt: Number(aliveAt) },
    ...(release === null || release === undefined ? {} : { release }),
  }))
}

const DECLARE = `insert into belfry.declarations (app, hash, release, schedules, first_seen_at, alive_at)
  select $1, $2, $3, $4, now_ms, now_ms from (select belfry.now_us() / 1000 as now_ms) clock
  on conflict (app, hash) do nothing`

export async function declareSet(
  db: Database,
  app: string,
  { hash, release, schedules }: Pick<DeclaredSet, 'hash' | 'release' | 'schedules'>,
): Promise<void> {
  await db.write(DECLARE, [app, hash, release ?? null, JSON.stringify(schedules)])
}
