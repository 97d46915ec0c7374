/** Scripts and the TypeScript that calls them use the same names, fields and limits. */
import { readdirSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'
import { SOON_MS } from '../../../core/connection/hint.js'
import { FRESH_PLACE } from '../../../core/locks/lease.js'
import { LOST_MESSAGE } from '../../../core/runs/lost-message.js'
import { MAX_TAKEOVERS } from '../../../core/runs/run.js'
import type { StoredInstance } from '../instances/instance-codec.js'
import type { StoredLease, StoredLock, StoredTerms } from '../locks/lease-codec.js'
import type { StoredRecordHead } from '../records/record-codec.js'
import type { StoredRun } from '../runs/run-codec.js'
import { KEYS } from '../schema/keys.js'
import '../store.js'
import { listOf, luaScript, maybe, number, scripts, text } from './lua-script.js'

const ROOT = join(dirname(fileURLToPath(import.meta.url)), '..')

const sources = new Map(
  readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.lua'))
    .map((file) => [file.replace(/\.lua$/, ''), readFileSync(join(ROOT, file), 'utf8')]),
)

const all = (pattern: RegExp, source: string) => new Set([...source.matchAll(pattern)].map(([, name = '']) => name))

it('a script reads the parameters that it declares, and no others', () => {
  expect(scripts.length).toBeGreaterThan(40)
  for (const { name, names, composed } of scripts) {
    const source = sources.get(name) ?? ''
    const read = [...all(/\bgiven\.(\w+)/g, source)]
    expect([name, read.filter((each) => !names.takes.includes(each))]).toEqual([name, []])
    const unread = names.takes.filter((each) => !new RegExp(`\\.${each}\\b`).test(composed.server.text))
    expect([name, unread]).toEqual([name, []])
  }
})

it('a script answers the results that it declares, and no others', () => {
  for (const { name, names } of scripts) {
    const source = sources.get(name) ?? ''
    for (const [, fields = ''] of source.matchAll(/\breply\(\{([^}]*)\}/g)) {
      const answered = [...all(/(\w+) = /g, fields)]
      expect([name, answered.filter((each) => !names.gives.includes(each))]).toEqual([name, []])
    }
  }
})

it('scripts name the keys of the list, and all of them', () => {
  const text = [...sources.values()].join('\n')
  const named = new Set([
    ...all(/\bkey\('([a-z-]+)'/g, text),
    ...all(/'((?:key|schedule)-[a-z-]+)'/g, text),
    'runs-all',
  ])
  expect([...named].sort()).toEqual(Object.keys(KEYS).sort())
})

/** All fields of a stored run. The compiler reports a missing one. */
const RUN_FIELDS: Readonly<Record<keyof StoredRun, true>> = {
  ...{ state: true, waitsFor: true, skipsIfBusy: true, unconfirmed: true, isEnding: true },
  ...{ reason: true, cancelRequested: true },
  ...{ target: true, origin: true, priority: true, keep: true, schedule: true, tick: true, backfill: true },
  ...{ key: true, permits: true, whenBusy: true, keyShard: true, unstamped: true, dedupe: true, dedupeForMs: true },
  ...{ readyAt: true, startBy: true, byDeadline: true, createdAt: true, startedAt: true, finishedAt: true },
  ...{ attempt: true, failures: true, takeovers: true, isTakenOver: true, token: true, settledToken: true },
  ...{ instance: true, claim: true },
}

const LOCK_FIELDS: Readonly<Record<keyof StoredLock, true>> = {
  ...{ lastToken: true, waiters: true, runs: true, holders: true },
}
const LEASE_FIELDS: Readonly<Record<keyof StoredLease, true>> = {
  ...{ holder: true, token: true, acquiredAt: true, expiresAt: true, released: true, instance: true, run: true },
}
const TERMS_FIELDS: Readonly<Record<keyof StoredTerms, true>> = {
  ...{ ttlMs: true, permits: true, instance: true, floor: true, placeUntil: true },
}
const INSTANCE_FIELDS: Readonly<Record<keyof StoredInstance, true>> = {
  ...{ expiresAt: true, dead: true, claimsSettled: true, joinedAt: true, beatAt: true, app: true, declarations: true },
}
const RECORD_FIELDS: Readonly<Record<keyof StoredRecordHead, true>> = { writtenAt: true, expiresAt: true }

/** The fields that scripts read from a variable or write to it. */
function fieldsUsed(variables: string, source: string): Set<string> {
  const code = source.replace(/--.*$/gm, '')
  const made = [...code.matchAll(new RegExp(`\\b(?:${variables}) = \\{([^}]*)\\}`, 'g'))].map(([, inside]) => inside)
  return new Set([...all(new RegExp(`\\b(?:${variables})\\.(\\w+)`, 'g'), code), ...all(/(\w+) = /g, made.join('\n'))])
}

const everything = [...sources.values()].join('\n')

// The last column has the fields that exist only inside scripts and are not stored under these names.
it.each([
  ['runs', 'run|ticket|copy', everything, RUN_FIELDS, ['number', 'rest']],
  ['locks', 'lock', everything, LOCK_FIELDS, ['name', 'isStored']],
  ['leases', 'lease', everything, LEASE_FIELDS, []],
  ['waiters', 'terms', everything, TERMS_FIELDS, []],
  ['instances', 'instance', everything, INSTANCE_FIELDS, ['info']],
  ['records', 'head', sources.get('records/record-text') ?? '', RECORD_FIELDS, []],
])('scripts know the fields of %s that the codec has, and all of them', (_what, variables, source, stored, own) => {
  const used = [...fieldsUsed(variables, source)].sort()
  expect(used).toEqual([...Object.keys(stored), ...own].sort())
})

it('scripts have the limits and messages of core', () => {
  const has = (script: string, line: string) => expect(sources.get(script)).toContain(line)
  has('runs/transitions', `local MAX_TAKEOVERS = ${MAX_TAKEOVERS}\n`)
  expect(sources.get('runs/transitions')?.replace(/' \.\.\s+'/g, '')).toContain(
    `local LOST_MESSAGE = '${LOST_MESSAGE}'`,
  )
  has('schedules/write', `local SOON_MS = ${SOON_MS}\n`)
  has('locks/acquire', 'local FRESH_PLACE = 2 / 3\n')
  expect(FRESH_PLACE).toBe(2 / 3)
})

it('results are read as their shapes say: empty lists, long numbers, and absent values', () => {
  const script = luaScript({
    name: 'test',
    source: '',
    takes: { names: listOf(text) },
    gives: { list: listOf(text), token: number, none: maybe(text) },
  })
  scripts.pop()
  expect(script.answer('runs settled\n{"list":{},"token":"1700000000000123"}')).toEqual({
    gives: { list: [], token: 1_700_000_000_000_123 },
    woken: ['runs', 'settled'],
  })
  // A lone surrogate becomes U+FFFD, because cjson refuses its escape. A backslash followed by "ud800" stays as it is.
  expect(script.argument({ names: ['a\ud800b', '\\ud800', '😀'] })).toBe('{"names":["a\ufffdb","\\\\ud800","😀"]}')
})
