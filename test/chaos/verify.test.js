// @ts-check
/**
 * Checks that the chaos test detects each kind of violation: evidence with one violation leads to the expected message.
 */
import { describe, expect, it } from 'vitest'
import { monotonicMs } from './monotonic.js'
import { checkBusy } from './run-order.js'
import { verify } from './verify.js'

const ANCHOR = Date.UTC(2026, 0, 1)
const KEY = { name: 'k', limit: 1, whenBusy: 'wait' }
const BEGAN = monotonicMs() - 60_000

/** Ticks at the first, second and third second: two succeeded under one key, and one was skipped. */
function soundEvidence() {
  const runs = [run('1', 1, 100), run('2', 2, 200)]
  return {
    runs,
    skipped: new Set([3]),
    lines: [
      line('start', 0, runs[0], 10),
      line('end', 10, runs[0], 10),
      line('settled', 12, runs[0], 10),
      line('start', 20, runs[1], 10),
      line('end', 30, runs[1], 10),
      line('settled', 32, runs[1], 10),
    ],
    effects: [
      { run: '1', key: 'k', token: 100 },
      { run: '2', key: 'k', token: 200 },
    ],
    /** @type {import('./worker-processes.js').Kill[]} */
    kills: [],
    /** @type {import('./worker-processes.js').Stop[]} */
    stops: [],
    /** @type {string[]} */
    unexpectedExits: [],
    /** @type {import('./chaos.js').Outage[]} */
    outages: [],
    skews: [0],
    frozenHoldsStore: false,
    overlap: 'allow',
  }
}

/** @param {string} id @param {number} second @param {number} token @returns {any} */
function run(id, second, token) {
  const tick = ANCHOR + second * 1_000
  const times = { createdAt: tick, startedAt: tick + 10, finishedAt: tick + 20 }
  return { id, schedule: 's', tick, token, key: KEY, state: 'succeeded', attempt: 1, takeovers: 0, ...times }
}

/** @param {string} kind @param {number} ms @param {any} of @param {number} pid @returns {any} */
function line(kind, ms, of, pid) {
  return { kind, t: BEGAN + ms, pid, run: of.id, attempt: of.attempt, token: of.token, event: `s-${of.id}` }
}

/** @param {(of: ReturnType<typeof soundEvidence>) => void} spoil */
async function found(spoil) {
  const of = soundEvidence()
  spoil(of)
  /** @type {any} */
  const operator = {
    runs: { list: async () => ({ items: of.runs }) },
    schedules: {
      get: async () => ({ id: 's', anchor: ANCHOR, cursor: ANCHOR + 3_000, definition: { overlap: of.overlap } }),
      explain: async () => ({ status: 'unknown', text: 'nobody knows' }),
      ticks: async () => ({
        ticks: [...of.skipped].map((second) => ({ at: new Date(ANCHOR + second * 1_000), status: 'skipped' })),
      }),
    },
  }
  const { kills, stops, unexpectedExits, lines, effects, skews, outages } = of
  const history = { outages, recoveries: [], late: [] }
  const workers = { kills, stops, unexpectedExits }
  const setup = { skews, leaseMs: 2_000, clockErrorMs: 0, frozenHoldsStore: of.frozenHoldsStore }
  const { violations, late } = await verify({ operator, ids: ['s'], lines, effects, workers, history, ...setup })
  return [...violations, ...late]
}

describe('the chaos test', () => {
  it('reports nothing when all invariants hold', async () => {
    expect(await found(() => {})).toEqual([])
  })

  it('reports a tick that is neither a run nor a skip', async () => {
    expect(await found(({ skipped }) => skipped.clear())).toEqual([
      'tick 2026-01-01T00:00:03.000Z of s is lost: nobody knows',
    ])
  })

  it('reports a tick that was recorded twice', async () => {
    const twice = await found(({ runs, effects }) => {
      runs.push({ ...run('3', 2, 300), state: 'cancelled' })
      effects.splice(2)
    })
    expect(twice).toEqual(['run 3 (tick 2026-01-01T00:00:02.000Z of s) and run 2 are of the same tick'])
  })

  it('reports a run that succeeded without its handler', async () => {
    expect(await found(({ lines }) => lines.splice(3, 3))).toEqual([
      'run 2 (tick 2026-01-01T00:00:02.000Z of s) succeeded without its handler',
    ])
  })

  it('reports a failed run', async () => {
    const failed = await found(({ runs, effects }) => {
      Object.assign(runs[1], { state: 'failed', error: { message: 'out of luck' } })
      effects.pop()
    })
    expect(failed).toEqual(['run 2 (tick 2026-01-01T00:00:02.000Z of s) failed: out of luck'])
  })

  it('reports a run that a stale attempt settled', async () => {
    expect(await found(({ lines }) => Object.assign(lines[5], { token: 150 }))).toEqual([
      'run 2 (tick 2026-01-01T00:00:02.000Z of s) was settled by a stale attempt (token 150)',
    ])
  })

  it('reports a run that was settled twice, and an attempt that started twice', async () => {
    expect(await found(({ lines }) => lines.push({ ...lines[5] }, { ...lines[0] }))).toEqual([
      'run 2 was settled twice',
      'attempt 1 of run 1 started twice',
    ])
  })

  it('reports overlapping runs of one key', async () => {
    expect(await found(({ lines }) => Object.assign(lines[3], { t: BEGAN + 5 }))).toEqual([
      'run 1 (tick 2026-01-01T00:00:01.000Z of s) and run 2 (tick 2026-01-01T00:00:02.000Z of s) of k overlapped',
    ])
  })

  it('reports a key whose token decreased', async () => {
    const fell = await found(({ runs, lines, effects }) => {
      runs[1].token = 50
      for (const at of [3, 4, 5]) Object.assign(lines[at], { token: 50 })
      Object.assign(effects[1] ?? {}, { token: 50 })
    })
    expect(fell).toEqual([
      'the token of k fell from 100 to 50',
      'run 2 (tick 2026-01-01T00:00:02.000Z of s) had k before an older run of s',
      'effects of k were committed out of order: token 50 after 100',
    ])
  })

  it('reports runs of a schedule that overlapped or started out of order, under a policy that forbids it', async () => {
    const [one, two] = ['run 1 (tick 2026-01-01T00:00:01.000Z of s)', 'run 2 (tick 2026-01-01T00:00:02.000Z of s)']
    for (const policy of ['skip', 'queue-one', 'queue-all', 'cancel-running']) {
      const overlapping = await found((of) => {
        of.overlap = policy
        for (const each of of.runs) Object.assign(each, { key: undefined })
        of.effects.length = 0
        // The run must not start before its turn, not even with a first attempt that is lost later.
        of.lines.push({ ...of.lines[3], t: BEGAN + 5, token: 150, attempt: 0 })
      })
      expect(overlapping).toEqual([`${one} and ${two}, with overlap ${policy}, overlapped for 5 ms`])
    }
    const swapped = await found((of) => {
      of.overlap = 'queue-all'
      for (const each of of.runs) Object.assign(each, { key: undefined })
      of.effects.length = 0
      for (const each of of.lines) each.t = BEGAN + ((each.t - BEGAN + 20) % 40)
    })
    expect(swapped).toEqual([`${two} and ${one}, with overlap queue-all, began in this order`])
  })

  it('reports a run that got its key before an older one, unless that was only just recorded', async () => {
    const late = (/** @type {number} */ recordedAt) =>
      found(({ runs }) => {
        Object.assign(runs[0], { createdAt: ANCHOR + recordedAt, startedAt: ANCHOR + 20_000 })
        Object.assign(runs[1], { createdAt: ANCHOR + 9_500, startedAt: ANCHOR + 10_000 })
      })
    expect(await late(1_000)).toEqual([
      'run 2 (tick 2026-01-01T00:00:02.000Z of s) had k before run 1 (tick 2026-01-01T00:00:01.000Z of s), which is older',
    ])
    expect(await late(8_000)).toEqual([])
  })

  it('reports a run that got its key before an older one of its schedule, however close they are', async () => {
    const swapped = await found(({ runs, lines, effects }) => {
      for (const run of runs) run.token = 300 - run.token
      for (const each of lines) each.t = BEGAN + ((each.t - BEGAN + 20) % 40)
      for (const each of [...lines, ...effects]) each.token = 300 - (each.token ?? 0)
      lines.sort((one, other) => one.t - other.t)
      effects.reverse()
    })
    expect(swapped).toEqual(['run 2 (tick 2026-01-01T00:00:02.000Z of s) had k before an older run of s'])
  })

  it('reports a run that was skipped as busy while no run of its key was running', () => {
    const skippedAt = (/** @type {number} */ ms) => {
      const { runs } = soundEvidence()
      const times = { startedAt: undefined, finishedAt: ANCHOR + ms }
      runs.push({ ...run('3', 3, 0), state: 'skipped', reason: 'busy', attempt: 0, ...times })
      /** @type {string[]} */
      const unexplained = []
      expect(checkBusy(new Map(runs.map((each) => [each.id, each])), 0, unexplained)).toBe(1)
      return unexplained
    }
    expect(skippedAt(2_015)).toEqual([])
    const skipped = 'run 3 (tick 2026-01-01T00:00:03.000Z of s) was skipped as busy, and nothing of k ran then'
    expect(skippedAt(2_005)).toEqual([`${skipped}; run 1 (tick 2026-01-01T00:00:01.000Z of s) had ended 985 ms before`])
    expect(skippedAt(2_025)).toEqual([`${skipped}; run 2 (tick 2026-01-01T00:00:02.000Z of s) had ended 5 ms before`])
  })

  it('reports a run that committed twice, not at all, or by a stale attempt', async () => {
    const twice = await found(({ effects }) => effects.push({ run: '2', key: 'k', token: 201 }))
    expect(twice).toContain('a stale attempt of run 2 (tick 2026-01-01T00:00:02.000Z of s) committed (token 201)')
    expect(twice).toContain('run 2 (tick 2026-01-01T00:00:02.000Z of s) succeeded and committed 2 effects')
    const none = await found(({ effects }) => effects.pop())
    expect(none).toEqual(['run 2 (tick 2026-01-01T00:00:02.000Z of s) succeeded and committed 0 effects'])
  })

  it('reports a slow takeover, unless the store was down', async () => {
    /** @param {ReturnType<typeof soundEvidence>} of */
    const killed = ({ lines, kills }) => {
      // The run's first attempt was running when its process was killed; its second attempt settled.
      lines.push({ ...lines[3], pid: 11, token: 150, t: BEGAN - 10_000 })
      for (const at of [3, 4, 5]) Object.assign(lines[at], { attempt: 2 })
      kills.push({ pid: 11, at: BEGAN - 5_000 })
    }
    expect(await found(killed)).toEqual([
      's-2 was taken over 5020 ms after kill -9 of 11: more than 1.5 leases, and runs were usually 0 ms late then',
    ])
    const excused = await found((of) => {
      killed(of)
      of.outages.push({ from: BEGAN - 4_000, to: BEGAN - 1_000 })
    })
    expect(excused).toEqual([])
    const behindFrozen = (/** @type {boolean} */ frozenHoldsStore) =>
      found((of) => {
        killed(of)
        Object.assign(of, { frozenHoldsStore })
        of.stops.push({ pid: 12, from: BEGAN - 4_500, to: BEGAN - 500, isFrozen: true })
      })
    expect(await behindFrozen(true)).toEqual([])
    expect(await behindFrozen(false)).toHaveLength(1)
  })

  it('reports a lock whose token decreased, and a token that two attempts had', async () => {
    const spoiled = await found(({ lines }) => {
      const lock = { kind: 'lock', key: 'l', pid: 10 }
      lines.push({ ...lock, sentAt: BEGAN, t: BEGAN + 5, token: 8 })
      // The two locks were requested at the same time, so either may have been granted first.
      lines.push({ ...lock, sentAt: BEGAN + 1, t: BEGAN + 4, token: 7 })
      lines.push({ ...lock, sentAt: BEGAN + 6, t: BEGAN + 7, token: 8 })
      Object.assign(lines[0], { key: 'k' })
      lines.push({ ...lines[0], attempt: 2 })
    })
    expect(spoiled).toEqual([
      'the token of the lock l fell from 8 to 8 (10)',
      'token 100 of k was given to attempt 1 of run 1 and to attempt 2 of run 1',
    ])
  })

  it('reports a process that exited by itself, and one whose clock does not have the configured skew', async () => {
    const spoiled = await found(({ unexpectedExits, lines }) => {
      unexpectedExits.push('process 3 ended: 1')
      lines.push({ kind: 'up', t: BEGAN, pid: 10, slot: 0, clock: Date.now() - 60_000 + 600_000 })
    })
    expect(spoiled).toEqual([
      'process 3 ended: 1',
      expect.stringMatching(/clock of process 0 is off by 60\d{4}.* not 0 ms/),
    ])
  })
})
