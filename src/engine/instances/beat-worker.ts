/** The entry of the beat thread. It connects `backup-beats.ts` to the messages of the main thread (`beat-thread.ts`). */
import { writeSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../../core/clock.js'
import type { BeatStoreModule } from '../../core/instances/beat-store.js'
import { silentLogger } from '../../core/logger.js'
import { Events } from '../events.js'
import { Health } from '../health.js'
import { lockNames, runningText } from '../locks/lock-names.js'
import { Loop } from '../loop.js'
import { BackupBeats } from './backup-beats.js'
import type { BeatThreadData, FromBeatThread, ToBeatThread } from './beat-messages.js'
import { SharedInstant } from './shared-instant.js'

const { source, turnedAt, maxBlockMs, warns } = workerData as BeatThreadData
const { openBeatStore } = (await import(source.module)) as BeatStoreModule
const STDERR = 2
let running = ''

const beats = new BackupBeats({
  clock: systemClock,
  turnedAt: new SharedInstant(turnedAt),
  maxBlockMs,
  open: () => openBeatStore(source.options),
  onBlocked: (silentMs, locks) =>
    warnNow(
      { blockedMs: Math.round(silentMs), running: runningText(running, lockNames(locks)) },
      'the event loop is blocked, or the process was stopped; another thread keeps its work until maxBlock',
    ),
  onDead: (silentMs, locks) =>
    warn(
      { blockedMs: Math.round(silentMs), maxBlockMs, running: runningText(running, lockNames(locks)) },
      'the event loop has been blocked for longer than maxBlock: the process counts as dead, and its work is taken over',
    ),
})
const loop = new Loop({
  name: 'beat thread',
  clock: systemClock,
  health: new Health(systemClock, { ...silentLogger, warn: unreachable }, new Events(silentLogger)),
  step: () => beats.catchUp(),
})

/** Health calls this once in each outage. */
function unreachable(fields: object): void {
  sendLine('warn', fields, 'the beat thread cannot reach the store; still trying')
}

/**
 * Writes to standard error directly, because the main thread is blocked and may never log again. If the main thread
 * wakes, it logs the warning too.
 */
function warn(fields: object, message: string): void {
  warnNow(fields, message)
  sendLine('warn', fields, message)
}

/** For a block that may still end: the main thread logs its own warning then. */
function warnNow(fields: object, message: string): void {
  if (warns) writeSync(STDERR, `belfry warning: ${message} ${JSON.stringify(fields)}\n`)
}

function sendLine(level: FromBeatThread['level'], fields: object, message: string): void {
  parentPort?.postMessage({ level, fields, message } satisfies FromBeatThread)
}

async function close(): Promise<void> {
  await loop.stop()
  await beats.close().catch(() => {})
  parentPort?.close()
}

parentPort?.on('message', (message: ToBeatThread) => {
  if (message.kind === 'close') return void close()
  if (message.kind === 'running') running = message.running
  else if (message.kind === 'instance') {
    beats.setInstance(message.instance)
    loop.wake()
  } else {
    for (const holder of message.dropped) beats.drop(holder)
    for (const lock of message.held) if (beats.hold(lock)) loop.wake()
  }
})
loop.start()
sendLine('debug', {}, 'the beat thread is ready')
