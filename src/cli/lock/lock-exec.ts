/**
 * Runs a program under a lock. For this process the lease begins when it sends the request, not with the reply, and ends 5 %
 * of the ttl before the expiry in the store. By then the supervisor has ended the program, even if this process was stopped
 * or killed.
 *
 *     sent ─────────────────────────────────── SIGTERM ──── SIGKILL ── 5 % ── expiry
 */

import { constants, hostname } from 'node:os'
import { basename } from 'node:path'
import { located } from '../../api/located.js'
import type { BelfryClient, LeaseResource } from '../../client/index.js'
import { BelfryError, failure } from '../../core/errors.js'
import { describeHolders, newHolder } from '../../core/locks/holder.js'
import { durationMs, durationText } from '../../time/duration.js'
import type { LockExecFlags } from '../commands/lock.js'
import { waitMs } from '../operator/wait-for-run.js'
import { NotStarted, type SupervisedProgram, Supervisor } from '../supervisor/supervisor.js'
import { machineMs, type ProgramEnd } from '../supervisor/supervisor-messages.js'
import { writeLine } from '../terminal/clean-text.js'
import { interruption } from '../terminal/interruption.js'
import { keepLease } from './keep-lease.js'

/** The longest wait of one request. */
const ONE_WAIT_MS = 30_000
/** Part of the ttl kept as margin: clocks drift, and killing takes time. */
const MARGIN = 0.05
const LEAST_TTL_MS = 1_000
/** As the service has it. */
const MAX_HOLDER = 200

export async function lockExec(
  client: BelfryClient,
  name: string,
  [file = '', ...args]: readonly string[],
  { ttl, wait = '0s', permits = 1, killAfter }: LockExecFlags,
): Promise<number> {
  const ttlMs = located('--ttl', () => durationMs(ttl))
  const killAfterMs = located('--kill-after', () => durationMs(killAfter))
  const patienceMs = located('--wait', () => waitMs(wait))
  if (ttlMs < LEAST_TTL_MS) throw failure('OPTION_INVALID', `--ttl: ${ttl} is too short to renew in time: at least 1s`)
  const supervisor = await Supervisor.start('inherit')
  try {
    const { lease, sentAt } = await acquire(client, { name, file, ttlMs, permits, patienceMs })
    const graceMs = Math.min(killAfterMs, ttlMs / 4)
    const extendFrom = (at: number) => supervisor.extend(at + ttlMs * (1 - MARGIN), graceMs)
    extendFrom(sentAt)
    const env = { ...process.env, BELFRY_LOCK_NAME: name, BELFRY_LOCK_TOKEN: String(lease.token) }
    const program = supervisor.run({ file, args, env, capture: false })
    const stopForwarding = forwardSignals(program)
    let lost: string | undefined
    supervisor.onExpired = () => {
      lost ??= 'it could not be renewed in time'
    }
    const stopRenewing = keepLease(client, lease, ttlMs, {
      renewed: extendFrom,
      lost: () => {
        lost ??= 'another holder has it, or it was reset'
        program.end(killAfterMs)
      },
    })
    const code = await exitCode(program, file)
    stopForwarding()
    await stopRenewing()
    if (lost === undefined) lost = await release(client, name, lease)
    if (lost !== undefined) writeLine(process.stderr, `belfry: the lock "${name}" was lost: ${lost}`)
    return lost !== undefined && code === 0 ? 1 : code
  } finally {
    supervisor.close()
  }
}

/**
 * Resolves to the reason if the lock was lost. An unreachable service is no reason: the supervisor has enforced the deadline,
 * so the program held the lock until it ended.
 */
async function release(client: BelfryClient, name: string, lease: LeaseResource): Promise<string | undefined> {
  const wasHeld = await client.locks.release(name, lease).catch(() => true)
  return wasHeld ? undefined : 'another holder acquired it before the release, or it was reset'
}

interface Acquired {
  readonly lease: LeaseResource
  /** When the request was sent, by `machineMs`. The lease lasts at least its ttl from then on. */
  readonly sentAt: number
}

interface Wanted {
  readonly name: string
  readonly file: string
  readonly ttlMs: number
  readonly permits: number
  readonly patienceMs: number
}

async function acquire(client: BelfryClient, { name, file, ttlMs, permits, patienceMs }: Wanted): Promise<Acquired> {
  const { signal, release } = interruption()
  const untilMs = machineMs() + patienceMs
  // Arguments may be secrets, so the holder names the program only.
  const holder = newHolder({ as: basename(file), host: hostname(), pid: process.pid }, MAX_HOLDER)
  try {
    for (let isFirst = true; ; isFirst = false) {
      const sentAt = machineMs()
      const wait = isFirst ? 0 : Math.max(Math.min(untilMs - sentAt, ONE_WAIT_MS), 0)
      const lease = await client.locks.acquire(
        name,
        { ttl: durationText(ttlMs), permits, wait: durationText(Math.ceil(wait)), holder },
        signal,
      )
      if (lease !== undefined) return await withKnownStart(client, { lease, sentAt }, ttlMs)
      signal.throwIfAborted()
      if (machineMs() >= untilMs) throw await refusal(client, name, patienceMs)
      if (isFirst) writeLine(process.stderr, `belfry: waiting for the lock "${name}"`)
    }
  } catch (error) {
    if (!signal.aborted) throw error
    throw new BelfryError('INTERRUPTED', `interrupted while waiting for the lock "${name}"`)
  } finally {
    release()
  }
}

/** After a long wait it is unknown when the lease began, so a renewal starts it again at a known instant. */
async function withKnownStart(client: BelfryClient, { lease, sentAt }: Acquired, ttlMs: number): Promise<Acquired> {
  const now = machineMs()
  if (now - sentAt < ttlMs / 10) return { lease, sentAt }
  const renewed = await client.locks.renew(lease.name, lease, ttlMs)
  if (renewed === undefined)
    throw failure('LEASE_LOST', `the lock "${lease.name}" was lost right after it was acquired`)
  return { lease: renewed, sentAt: now }
}

async function refusal(client: BelfryClient, name: string, patienceMs: number) {
  const { holders } = await client.locks.get(name)
  const who = describeHolders(
    holders.map(({ acquiredAt, expiresAt, ...lease }) => ({
      ...{ ...lease, acquiredAt: Date.parse(acquiredAt), expiresAt: Date.parse(expiresAt) },
    })),
  )
  return patienceMs === 0
    ? failure('LOCK_BUSY', `the lock "${name}" is held by ${who}: --wait waits for it`)
    : failure('WAIT_TIMEOUT', `the lock "${name}" was not free in time: it is held by ${who}`)
}

const FORWARDED = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR2', 'SIGWINCH'] as const

/** Forwards signals to the program. Ignores Ctrl-Z: a stopped process cannot renew the lock. */
function forwardSignals(program: SupervisedProgram): () => void {
  const handlers = FORWARDED.map((signal) => [signal, () => program.signal(signal)] as const)
  for (const [signal, handler] of handlers) process.on(signal, handler)
  const ignore = () => process.stderr.write('belfry: Ctrl-Z is ignored: a stopped process cannot renew the lock\n')
  process.on('SIGTSTP', ignore)
  return () => {
    for (const [signal, handler] of handlers) process.off(signal, handler)
    process.off('SIGTSTP', ignore)
  }
}

async function exitCode(program: SupervisedProgram, file: string): Promise<number> {
  try {
    return codeOf(await program.ended)
  } catch (error) {
    if (!(error instanceof NotStarted)) throw error
    const isMissing = error.code === 'ENOENT'
    writeLine(process.stderr, `belfry: ${file}: ${isMissing ? 'there is no such program' : error.message}`)
    return isMissing ? 127 : 126
  }
}

function codeOf({ code, signal }: ProgramEnd): number {
  return code ?? 128 + (signal === null ? 0 : constants.signals[signal])
}
