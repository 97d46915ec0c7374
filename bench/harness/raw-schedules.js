// @ts-check
/**
 * The minimum that Postgres has to write for a schedule: one row as wide as Belfry's two, and the indexes by id, due
 * time and target.
 */

import { toText } from '../../dist/core/runs/stored-text.js'
import { numberArray, textArray } from './array-text.js'
import { openRawPostgres, RAW_BATCH } from './raw-postgres.js'

const TABLE = `
create table raw.made (like raw.belfry_schedules, body text, payload text, target text, priority integer, keep text,
  unstamped boolean);
alter table raw.made add primary key (id);
create index made_due on raw.made (due_at, place);
create index made_target on raw.made (target, id)`

const COLUMNS = `id, version, definition, anchor, cursor, due_at, place, next_at, created_at, updated_at, minds_overlap,
  removable, body, payload, target, priority, keep, unstamped`
const VALUES = `nextval('raw.run_ids'), nextval('raw.run_ids'), $AT, $AT, $AT, nextval('raw.run_ids'), $AT, $AT, $AT, false,
  true, $BODY, $PAYLOAD, 'job:noop', 0, 'all', false`

/** @param {string} at @param {string} body @param {string} payload */
const values = (at, body, payload) => VALUES.replaceAll('$AT', at).replace('$BODY', body).replace('$PAYLOAD', payload)

const MANY = `insert into raw.made (${COLUMNS}) select g.id, ${values('g.at', 'g.body', 'g.payload')}
  from unnest($1::text[], $2::bigint[], $3::text[], $4::text[]) as g(id, at, body, payload) returning version`
const ONE = `insert into raw.made (${COLUMNS}) values ($1, ${values('$2::bigint', '$3', '$4')}) returning version`

/** @param {import('../../dist/core/schedules/schedule.js').ScheduleDefinition} definition */
export async function openRawSchedules(definition) {
  const raw = await openRawPostgres()
  const body = JSON.stringify({ ...definition, payload: undefined })
  const payload = toText(definition.payload)
  await raw.pool.query(raw.here(TABLE))
  const many = { name: 'raw-put-many', text: raw.here(MANY) }
  const one = { name: 'raw-put-one', text: raw.here(ONE) }

  return {
    /** @param {number} count */
    async putMany(count) {
      for (let made = 0; made < count; made += RAW_BATCH) {
        const ids = Array.from({ length: Math.min(RAW_BATCH, count - made) }, (_, at) => `raw/${made + at}`)
        const same = (/** @type {string} */ value) => textArray(ids.map(() => value))
        const at = numberArray(ids.map(() => Date.now()))
        await raw.pool.query({ ...many, values: [textArray(ids), at, same(body), same(payload)] })
      }
    },

    /** @param {string} id */
    async put(id) {
      await raw.pool.query({ ...one, values: [id, Date.now(), body, payload] })
    },

    close: raw.close,
  }
}
