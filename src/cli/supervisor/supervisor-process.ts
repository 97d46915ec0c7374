/**
 * The supervisor: a child process that starts programs for its parent and outlives it, so that no program keeps running
 * without a lease.
 *
 * - The parent dies, even by kill -9: the channel closes, and the supervisor ends the programs.
 * - The parent is stopped (SIGSTOP), or can no longer renew its lease: the deadline that it last set passes, and the
 *   supervisor ends the programs before another holder can acquire the lease.
 * - The supervisor dies: the parent notices, knows the process ids, and kills the programs.
 *
 * Each program leads a process group of its own, and signals go to the group, so that children of a shell end with it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { BoundedText } from './bounded-text.js'
import { type FromSupervisor, machineMs, type Program, type ToSupervisor } from './supervisor-messages.js'

/** How long to wait for output after a program has ended: its children may live on and hold the pipe open for ever. */
const OUTPUT_MS = 500
/** From SIGTERM to SIGKILL after the parent's death. */
const ORPHAN_GRACE_MS = 2_000

const running = new Map<number, ChildProcess>()
let cancelDeadline = () => {}
let deadlineMs = Number.POSITIVE_INFINITY

function tell(message: FromSupervisor): void {
  if (process.connected) process.send?.(message, () => {})
}

function start(id: number, { file, args, env, cwd, uid, gid, stdin, capture }: Program): void {
  const child = spawn(file, args, {
    ...{ env, detached: true, stdio: capture ? [stdin === undefined ? 'ignore' : 'pipe', 'pipe', 'pipe'] : 'inherit' },
    ...(cwd === undefined ? {} : { cwd }),
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
  })
  const output = new BoundedText()
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => output.add(chunk))
  // The program may close its standard input without reading it.
  child.stdin?.on('error', () => {})
  child.stdin?.end(stdin)
  child.on('spawn', () => {
    running.set(id, child)
    tell({ kind: 'started', id, pid: child.pid ?? 0 })
  })
  child.on('error', (error: NodeJS.ErrnoException) => {
    if (child.pid === undefined) tell({ kind: 'refused', id, code: error.code ?? '', message: error.message })
  })
  child.on('exit', async (code, signal) => {
    if (capture) await closed(child)
    running.delete(id)
    tell({ kind: 'ended', id, code, signal, output: output.whole })
    if (!process.connected && running.size === 0) process.exit()
  })
}

function closed(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      for (const stream of [child.stdout, child.stderr]) stream?.destroy()
      resolve()
    }
    const timer = setTimeout(done, OUTPUT_MS)
    child.once('close', done)
  })
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, signal)
  } catch {
    // The program has already ended.
  }
}

function end(child: ChildProcess, graceMs: number): void {
  signalGroup(child, 'SIGTERM')
  const kill = setTimeout(() => signalGroup(child, 'SIGKILL'), Math.max(graceMs, 0))
  child.once('exit', () => clearTimeout(kill))
}

function endAll(graceMs: number): void {
  for (const child of running.values()) end(child, graceMs)
}

function extend(untilMs: number, graceMs: number): void {
  cancelDeadline()
  deadlineMs = untilMs
  const timer = setTimeout(
    () => {
      tell({ kind: 'expired' })
      endAll(untilMs - machineMs())
    },
    Math.max(untilMs - graceMs - machineMs(), 0),
  )
  cancelDeadline = () => clearTimeout(timer)
}

process.on('message', (message: ToSupervisor) => {
  if (message.kind === 'run') return start(message.id, message.program)
  if (message.kind === 'extend') return extend(message.untilMs, message.graceMs)
  const child = running.get(message.id)
  if (child === undefined) return
  if (message.kind === 'signal') signalGroup(child, message.signal)
  else end(child, message.graceMs)
})

process.on('disconnect', () => {
  if (running.size === 0) process.exit()
  endAll(Math.min(ORPHAN_GRACE_MS, deadlineMs - machineMs()))
})

// The supervisor must outlive its parent, so a signal to the whole process group does not end it.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) process.on(signal, () => {})

tell({ kind: 'ready' })
