/**
 * A program under a lock. Trust in the lease starts when it was asked for, not when the answer came, and ends a little
 * before the lease does; what has to be over by then is told so in time to end by itself. The guard sees to that, also
 * when this process is stopped or killed.
 */
import { randomUUID } from 'node:crypto'
import { constants } from 'node:os'
import { located } from '../../api/located.js'
import type { BelfryClient, LeaseResource } from '../../client/index.js'
import { BelfryError, failure } from '../../core/errors.js'
import { durationMs } from '../../time/duration.js'
import type { LockExecFlags } from '../commands/lock.js'
import { Guard, NotStarted, type Started } from '../guard/guard.js'
import { machineMs, type ProgramEnd } from '../guard/guard-messages.js'
import { waitMs } from '../operator/wait-for-run.js'
import { interruption } from '../terminal/interruption.js'
import { keepLease } from './keep-lease.js'

/** What one request may wait for. */
const ONE_WAIT_MS = 30_000
/** Clocks run at slightly different speeds, and killing takes a moment. */
const MARGIN = 0.05
const LEAST_TTL_MS = 1_000

export async function lockExec(
  client: BelfryClient,
  name: string,
  [file = '', ...args]: readonly string[],
  { ttl, wait = '0s', permits = 1, killAfter }: LockExecFlags,
): Promise<number> {
  const ttlMs = located('--ttl', () => durationMs(ttl))
  const killAfterMs = located('--kill-after', () => durationMs(killAfter))
  const patienceMs = located('--wait', () => waitMs(wait))
  if (ttlMs < LEAST_TTL_MS)
    throw failure('OPTION_INVALID', `--ttl: ${ttl} is too short to renew it in time: at least 1s`)
  const guard = await Guard.start('inherit')
  try {
    const { lease, sentAt } = await acquire(client, name, ttlMs, permits, patienceMs)
    const graceMs = Math.min(killAfterMs, ttlMs / 4)
    const trustFrom = (at: number) => guard.trust(at + ttlMs * (1 - MARGIN), graceMs)
    trustFrom(sentAt)
    const env = { ...process.env, BELFRY_LOCK_NAME: name, BELFRY_LOCK_TOKEN: String(lease.token) }
    const program = guard.run({ file, args, env, capture: false })
    const forget = forwardSignals(program)
    let lost: string | undefined
    guard.onLapsed = () => {
      lost ??= 'it could not be renewed in time'
    }
    const stop = keepLease(client, lease, ttlMs, {
      renewed: trustFrom,
      lost: () => {
        lost ??= 'somebody else has it, or it was reset'
        program.end(killAfterMs)
      },
    })
    const code = await exitCode(program, file)
    forget()
    await stop()
    if (lost === undefined) lost = await release(client, name, lease)
    if (lost !== undefined) process.stderr.write(`belfry: the lock "${name}" was lost: ${lost}\n`)
    return lost !== undefined && code === 0 ? 1 : code
  } finally {
    guard.close()
  }
}

/** Answers why the lock was lost, if it was. A service that does not answer says nothing: the guard has watched the time. */
async function release(client: BelfryClient, name: string, lease: LeaseResource): Promise<string | undefined> {
  const wasHeld = await client.locks.release(name, lease).catch(() => true)
  return wasHeld ? undefined : 'somebody else took it before it was released, or it was reset'
}

interface Acquired {
  readonly lease: LeaseResource
  /** By `machineMs`: the lease lasts at least its ttl from here. */
  readonly sentAt: number
}

async function acquire(
  client: BelfryClient,
  name: string,
  ttlMs: number,
  permits: number,
  patienceMs: number,
): Promise<Acquired> {
  const { signal, over } = interruption()
  const untilMs = machineMs() + patienceMs
  const holder = randomUUID()
  try {
    for (let isFirst = true; ; isFirst = false) {
      const sentAt = machineMs()
      const wait = isFirst ? 0 : Math.max(Math.min(untilMs - sentAt, ONE_WAIT_MS), 0)
      const lease = await client.locks.acquire(name, { ttl: ttlMs, permits, wait, holder }, signal)
      if (lease !== undefined) return await asNew(client, { lease, sentAt }, ttlMs)
      signal.throwIfAborted()
      if (machineMs() >= untilMs) throw refusal(name, patienceMs)
      if (isFirst) process.stderr.write(`belfry: waiting for the lock "${name}"\n`)
    }
  } catch (error) {
    if (!signal.aborted) throw error
    throw new BelfryError('INTERRUPTED', `interrupted while waiting for the lock "${name}"`)
  } finally {
    over()
  }
}

/** After a long wait nobody knows when the lease began: renewed, it lasts from now. */
async function asNew(client: BelfryClient, { lease, sentAt }: Acquired, ttlMs: number): Promise<Acquired> {
  const now = machineMs()
  if (now - sentAt < ttlMs / 10) return { lease, sentAt }
  const renewed = await client.locks.renew(lease.name, lease, ttlMs)
  if (renewed === undefined) throw failure('LEASE_LOST', `the lock "${lease.name}" was lost as soon as it was had`)
  return { lease: renewed, sentAt: now }
}

function refusal(name: string, patienceMs: number) {
  return patienceMs === 0
    ? failure('LOCK_BUSY', `the lock "${name}" is held by somebody else: --wait waits for it, belfry locks shows who`)
    : failure('WAIT_TIMEOUT', `the lock "${name}" was not to be had in time`)
}

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2', 'SIGWINCH'] as const

/** What is sent to us is meant for the program. One that is stopped holds no lock, so Ctrl-Z is not for us. */
function forwardSignals(program: Started): () => void {
  const handlers = FORWARDED.map((signal) => [signal, () => program.signal(signal)] as const)
  for (const [signal, handler] of handlers) process.on(signal, handler)
  const ignore = () => process.stderr.write('belfry: a lock is not held by what is stopped: Ctrl-Z does nothing here\n')
  process.on('SIGTSTP', ignore)
  return () => {
    for (const [signal, handler] of handlers) process.off(signal, handler)
    process.off('SIGTSTP', ignore)
  }
}

async function exitCode(program: Started, file: string): Promise<number> {
  try {
    return codeOf(await program.ended)
  } catch (error) {
    if (!(error instanceof NotStarted)) throw error
    const isMissing = error.code === 'ENOENT'
    process.stderr.write(`belfry: ${file}: ${isMissing ? 'there is no such program' : error.message}\n`)
    return isMissing ? 127 : 126
  }
}

function codeOf({ code, signal }: ProgramEnd): number {
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal])
}
