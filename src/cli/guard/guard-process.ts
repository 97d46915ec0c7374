/**
 * The guard: a process of its own that starts programs for another and outlives it, so that no program goes on alone.
 *
 * - The other dies, by kill -9 too: its end of the channel closes, and the programs are ended.
 * - The other is stopped, or can no longer renew what it holds: the time until which it was trusted passes, and the
 *   programs are ended before others may come in.
 * - The guard dies: the other sees it, knows the programs, and kills them.
 *
 * Each program leads a group (and session) of its own, and signals go to the group: children of a shell are ended with it.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { BoundedText } from './bounded-text.js'
import { type FromGuard, machineMs, type Program, type ToGuard } from './guard-messages.js'

/** How long to wait for output after a program has ended: what it left behind may hold the pipe for ever. */
const OUTPUT_MS = 500
/** After the other has died. */
const ORPHAN_GRACE_MS = 2_000

const running = new Map<number, ChildProcess>()
let cancelTrust = () => {}
let trustedUntilMs = Number.POSITIVE_INFINITY

function tell(message: FromGuard): void {
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
  // A program need not read what it is given.
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
    const give = () => {
      clearTimeout(timer)
      for (const stream of [child.stdout, child.stderr]) stream?.destroy()
      resolve()
    }
    const timer = setTimeout(give, OUTPUT_MS)
    child.once('close', give)
  })
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return
  try {
    process.kill(-child.pid, signal)
  } catch {
    // It has ended meanwhile.
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

function trust(untilMs: number, graceMs: number): void {
  cancelTrust()
  trustedUntilMs = untilMs
  const timer = setTimeout(
    () => {
      tell({ kind: 'lapsed' })
      endAll(untilMs - machineMs())
    },
    Math.max(untilMs - graceMs - machineMs(), 0),
  )
  cancelTrust = () => clearTimeout(timer)
}

process.on('message', (message: ToGuard) => {
  if (message.kind === 'run') return start(message.id, message.program)
  if (message.kind === 'trust') return trust(message.untilMs, message.graceMs)
  const child = running.get(message.id)
  if (child === undefined) return
  if (message.kind === 'signal') signalGroup(child, message.signal)
  else end(child, message.graceMs)
})

process.on('disconnect', () => {
  if (running.size === 0) process.exit()
  endAll(Math.min(ORPHAN_GRACE_MS, trustedUntilMs - machineMs()))
})

// Whoever ends the other ends us by that; a signal that reaches the whole service must not end the guard first.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'] as const) process.on(signal, () => {})

tell({ kind: 'ready' })
