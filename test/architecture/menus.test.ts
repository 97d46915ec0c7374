/**
 * Each list of permitted words (roles, policies, states) is written once in TypeScript, and the docs name all its
 * words.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'
import { ENGINE_ROLES } from '../../src/core/instances/instance.js'
import { BACKLOGS, MISSED_POLICIES, ON_FINISH, OVERLAPS, SKIP_REASONS, WHEN_BUSY } from '../../src/core/policies.js'
import { KEEPS, ORIGINS, RUN_STATES, UNFINISHED_STATES, WAITS_FOR } from '../../src/core/runs/run.js'
import { SCHEDULE_STATES } from '../../src/core/schedules/schedule.js'
import { ENQUEUE_OUTCOMES, WAKES } from '../../src/core/store.js'
import { SERVICE_ROLES } from '../../src/server/security/caller.js'
import { DST_GAPS, DST_REPEATS } from '../../src/time/cron/cron.js'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
const MENUS: Readonly<Record<string, readonly string[]>> = {
  ...{
    BACKLOGS,
    OVERLAPS,
    MISSED_POLICIES,
    ON_FINISH,
    KEEPS,
    UNFINISHED_STATES,
    SCHEDULE_STATES,
    ENQUEUE_OUTCOMES,
    WAKES,
  },
  ...{ SERVICE_ROLES, ORIGINS, WAITS_FOR, DST_GAPS, DST_REPEATS, ENGINE_ROLES },
}
/** Words that users write or read, and where they are explained. */
const EXPLAINED: Readonly<Record<string, readonly string[]>> = {
  'docs/getting-started.md': [
    ...OVERLAPS,
    ...MISSED_POLICIES,
    ...BACKLOGS,
    ...WHEN_BUSY,
    ...KEEPS,
    ...ON_FINISH,
    ...ENGINE_ROLES,
  ],
  'docs/guarantees.md': [...OVERLAPS, ...SKIP_REASONS],
  'docs/service.md': SERVICE_ROLES,
  'docs/time.md': [...DST_GAPS, ...DST_REPEATS],
  'docs/architecture.md': RUN_STATES,
}

const files = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts') && !/^(stores|testing)\//.test(file))
  .map((file) => ({ file, text: readFileSync(join(ROOT, 'src', file), 'utf8') }))

describe('a menu', () => {
  it.each(Object.entries(MENUS))('is written in one place: %s', (_, words) => {
    const listed = new RegExp(words.map((word) => `'${word}'`).join(String.raw`(?:,| \|)\s*`))
    const found = files.filter(({ text }) => listed.test(text)).map(({ file }) => file)
    expect(found).toHaveLength(1)
  })

  it.each(Object.entries(EXPLAINED))('is explained in %s', (file, words) => {
    const text = readFileSync(join(ROOT, file), 'utf8')
    expect(words.filter((word) => !new RegExp(`\\b${word}\\b`).test(text))).toEqual([])
  })
})
