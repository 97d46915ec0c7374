/** Every process reports a sink's outage, and the doctor reports no other problem because of it. */
import { afterEach, describe, expect, it } from 'vitest'
import { type Belfry, createBelfry, type Sink, silentLogger } from '../../src/index.js'
import { createServer } from '../../src/server/index.js'
import { metricsPage } from '../../src/server/shapes/metrics-page.js'
import { createTestBelfry, type TestBelfry } from '../../src/testing/index.js'

const MINUTE = 60_000
const SINCE = '2026-01-01T00:00:01Z'

function brokenSink() {
  const delivered: string[] = []
  const state = { isDown: true }
  const sink: Sink = {
    async deliver(messages) {
      if (state.isDown) throw new Error('connect ECONNREFUSED amqp://app:geheim@10.0.0.7:5672')
      delivered.push(...messages.map(({ id }) => id))
      return messages.map(() => ({ delivered: true }))
    },
  }
  return { sink, state, delivered }
}

let kit: TestBelfry
/** The instance of another process, which does not have the sink. */
let other: Belfry

function anotherProcess(): Belfry {
  const { store, clock } = kit
  return createBelfry({ store, clock, roles: [], logger: silentLogger })
}

afterEach(async () => {
  await Promise.all([kit.belfry.stop({ grace: 0 }), other.stop({ grace: 0 })])
})

async function outage() {
  const broken = brokenSink()
  kit = createTestBelfry({ sinks: { orders: broken.sink } })
  other = anotherProcess()
  await kit.belfry.schedules.putMany(
    Array.from({ length: 30 }, (_, at) => [`order/${at}`, { at: SINCE, to: 'orders', missed: 'all' }] as const),
  )
  await kit.belfry.start()
  await kit.advance('100s')
  return broken
}

async function findings(): Promise<readonly { readonly name: string; readonly what: string; readonly fix: string }[]> {
  return (await other.doctor()).flatMap(({ name, findings: found }) => found.map((each) => ({ name, ...each })))
}

const ready = async () => {
  const server = createServer(other, { authorise: async () => ({ name: 'probe', role: 'viewer' }) })
  const response = await server.fetch(new Request('http://localhost/readyz'))
  const answer = { status: response.status, body: await response.json() }
  await server.close()
  return answer
}

describe('an outage of a sink', () => {
  it('is one doctor finding: which sink, since when, why, the backlog, and the remedy', async () => {
    await outage()
    const found = await findings()
    expect(found).toEqual([
      {
        name: 'sinks',
        what: expect.stringMatching(
          /^the sink "orders" is unreachable since 2026-01-01T00:00:0\dZ \(\d+ s\), from [^ ]+:\d+: connect ECONNREFUSED amqp:\/\/app:\[redacted\]@10\.0\.0\.7:5672; (29|30) are due for it$/,
        ),
        fix: expect.stringMatching(
          /^bring it back, .* use up no attempts; one of them is tried every 10 s at the latest/,
        ),
      },
    ])
    const sinks = (await other.doctor()).find(({ name }) => name === 'sinks')
    expect(sinks?.about).toBe('1 sinks have somebody who delivers to them, 1 cannot be reached')
  })

  it('appears in explain() for waiting and for upcoming ticks', async () => {
    await outage()
    const outageText =
      /The sink "orders" is unreachable since 2026-01-01T00:00:0\dZ: connect ECONNREFUSED .* tried every 10 s/
    expect((await other.schedules.explain('order/7', SINCE)).text).toMatch(outageText)
    await other.schedules.put('later', { at: '2026-01-02T00:00:00Z', to: 'orders' })
    const later = await other.schedules.explain('later', '2026-01-02T00:00:00Z')
    expect(later).toMatchObject({ status: 'upcoming', text: expect.stringMatching(outageText) })
    await other.schedules.put('elsewhere', { at: '2026-01-02T00:00:00Z', to: 'log' })
    expect((await other.schedules.explain('elsewhere', '2026-01-02T00:00:00Z')).text).not.toMatch(/orders/)
  })

  it('leaves every process ready, and appears in the answer of /readyz', async () => {
    const broken = await outage()
    expect(await ready()).toEqual({
      status: 200,
      body: {
        status: 'ok',
        unreachableSinks: 1,
      },
    })
    broken.state.isDown = false
    await kit.advance('1m')
    expect(await ready()).toEqual({ status: 200, body: { status: 'ok' } })
  })

  it('is counted on the metrics page when it begins and when it ends', async () => {
    const broken = await outage()
    const lines = async () =>
      (await metricsPage(kit.belfry)).split('\n').filter((line) => /^belfry_sink_(outages|recoveries)_total/.test(line))
    expect(await lines()).toEqual([
      'belfry_sink_outages_total{target="orders"} 1',
      'belfry_sink_recoveries_total{target="orders"} 0',
    ])
    broken.state.isDown = false
    await kit.advance('1m')
    expect(await lines()).toEqual([
      'belfry_sink_outages_total{target="orders"} 1',
      'belfry_sink_recoveries_total{target="orders"} 1',
    ])
  })

  it('is zero on the metrics page before the first outage', async () => {
    kit = createTestBelfry({ sinks: { orders: brokenSink().sink } })
    other = anotherProcess()
    expect(await metricsPage(kit.belfry)).toMatch(/^belfry_sink_outages_total\{target="orders"\} 0$/m)
  })

  it('ends for every process when one event was delivered', async () => {
    const broken = await outage()
    expect(await other.unreachableSinks()).toHaveLength(1)
    broken.state.isDown = false
    await kit.advance('1m')
    expect(broken.delivered).toHaveLength(30)
    expect(await other.unreachableSinks()).toEqual([])
    expect(await findings()).toEqual([])
  })

  it('is reported while it lasts, and at most one minute after its process has died', async () => {
    await outage()
    await kit.advance('1h')
    expect(await other.unreachableSinks()).toMatchObject([{ sink: 'orders', error: /ECONNREFUSED/ }])
    kit.crash()
    await kit.advance(MINUTE + 1)
    expect(await other.unreachableSinks()).toEqual([])
  })

  it('is forgotten when its process stops', async () => {
    await outage()
    const stopped = kit.belfry.stop({ grace: 0 })
    await kit.advance('20s')
    await stopped
    expect(await other.unreachableSinks()).toEqual([])
  })

  it('that two processes report is one finding, with both processes', async () => {
    await outage()
    const second = kit.instance({ sinks: { orders: brokenSink().sink } })
    await second.start()
    await kit.advance('3m')
    const [told] = await other.unreachableSinks()
    expect(told?.instances).toHaveLength(2)
    expect(told?.since.toISOString()).toMatch(/^2026-01-01T00:00:0/)
    const stopped = second.stop({ grace: 0 })
    await kit.advance('20s')
    await stopped
  })
})

describe('the backlog', () => {
  it('counts all due runs, also when even more runs are not yet due', async () => {
    kit = createTestBelfry()
    other = anotherProcess()
    const job = kit.belfry.job('work', { run: () => null })
    const many = (count: number, options = {}) => Array.from({ length: count }, () => ({ payload: null, ...options }))
    await job.enqueueMany(many(1_500))
    await job.enqueueMany(many(3_000, { in: '1h' }))
    expect((await other.stats()).due).toEqual({ count: 1_500, more: false })
    expect(await metricsPage(other)).toMatch(/^belfry_backlog_runs 1500$/m)
  })
})
