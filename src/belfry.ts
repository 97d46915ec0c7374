/** The composition root: connects a store, the engine and the API. */
import { Belfry } from './api/belfry.js'
import { type BelfryOptions, type ParsedOptions, parseOptions } from './api/belfry-options.js'
import { instanceInfo } from './api/instance-info.js'
import { JobCatalogue } from './api/jobs/job-catalogue.js'
import { Lifecycle } from './api/lifecycle.js'
import { Locks } from './api/locks/locks.js'
import { Runs } from './api/runs/runs.js'
import { Declarations } from './api/schedules/declarations.js'
import { Schedules } from './api/schedules/schedules.js'
import { undeclaredText } from './api/schedules/undeclared.js'
import { SinkCatalogue } from './api/sinks/sink-catalogue.js'
import { TokenFloor } from './core/locks/token.js'
import { storeIdentity } from './core/records/store-identity.js'
import type { Store } from './core/store.js'
import { Engine } from './engine/engine.js'
import { Events } from './engine/events.js'
import { Health } from './engine/health.js'
import { BeatThread } from './engine/instances/beat-thread.js'
import { LoopWatch } from './engine/instances/loop-watch.js'
import { LockKeeper } from './engine/locks/lock-keeper.js'
import { runningText } from './engine/locks/lock-names.js'
import { Metrics } from './engine/metrics/metrics.js'
import { measured } from './engine/store/measured.js'
import { openedOnUse } from './engine/store/opened-on-use.js'

export type { Belfry } from './api/belfry.js'

/** What `transaction()` of a handler gives on this store, or on one of these. */
type TransactionOf<Given extends Store> = Given extends Store<infer Tx> ? Tx : unknown

export function createBelfry<Given extends Store>(
  options: BelfryOptions & { readonly store: Given },
): Belfry<TransactionOf<Given>> {
  return compose(parseOptions(options))
}

function compose(options: ParsedOptions): Belfry {
  const { clock, log, app, release, sinks, roles, jobs: named } = options
  /** The store's identity, for the ids of messages; known once the store is open. */
  let identity = ''

  const events = new Events(log)
  const metrics = new Metrics(events)
  if (roles.includes('run')) metrics.expectSinks(sinks.keys())

  const lifecycle = new Lifecycle({
    async prepare() {
      catalogue.checkNamed()
      await engine.check()
      await store.open()
      if (sinks.size > 0) identity = await storeIdentity(store.records)
      await declarations.check((id, input, from) => schedules.parse(id, input, from))
      await declarations.sync()
    },
    run() {
      loopWatch.start()
      engine.start()
    },
    async end(graceMs, wasStarted) {
      if (wasStarted) await engine.stop(graceMs)
      await engine.close()
      await locks.close()
      loopWatch.stop()
      await beatThread.stop()
      endWarnings?.()
      await store.close()
    },
    hurry: (graceMs) => engine.hurry(graceMs),
  })
  const store = openedOnUse(options.store, measured(options.store, metrics, clock), () =>
    lifecycle.stopOnSignals(options.signals, () => belfry.stop()),
  )
  const endWarnings = store.onWarning?.((message) => log.warn({}, message))
  const { keyPrefix } = options.store
  if (keyPrefix !== undefined) for (const { sink } of sinks.values()) sink.reserve?.(keyPrefix)

  const sinkCatalogue = new SinkCatalogue(store, clock, sinks, options.hasSinks)
  const catalogue = new JobCatalogue(store, clock, log, sinkCatalogue, named)
  const declarations = new Declarations(store, app, release, (ids) =>
    log.warn(
      { schedules: ids },
      `schedules that code declared before, and that no live instance declares, go on firing: ${undeclaredText(ids)}; with an \`app\` they would be removed`,
    ),
  )
  const schedules = new Schedules(store, catalogue, options.graceMs)
  const runs = new Runs(store, clock, lifecycle.ending)

  const health = new Health(clock, log, events)
  const shared = { ...options, store, events, health, floor: new TokenFloor(clock) }
  const loopWatch = new LoopWatch({
    ...{ clock, log, observe: (ms: number) => metrics.observe('belfry_event_loop_delay_ms', {}, ms) },
    running: () => runningText(engine.running, keeper.names),
    // The thread knows the locks that it renews.
    onTurn: () => beatThread.loopTurned(engine.running),
  })
  const beatThread = new BeatThread({ ...shared, onStart: () => loopWatch.start() })
  const engine: Engine = new Engine({
    ...shared,
    beatThread,
    jobs: catalogue.runnable,
    isLoopBusy: () => loopWatch.isBusy,
    storeIdentity: () => identity,
    describe: () => instanceInfo(options, catalogue, declarations.hash),
    stampKeys: () => catalogue.stampKeys(),
    syncReleases: () => declarations.sync(),
  })
  const keeper = new LockKeeper({ ...shared, beatThread })
  const locks = new Locks({ ...shared, keeper, instance: () => engine.instance })

  const parts = { options, store, events, metrics, lifecycle, catalogue, declarations, schedules, runs, locks }
  const belfry = new Belfry({ ...parts, instance: () => engine.instance, stuckParts: () => health.stuck })
  return belfry
}
