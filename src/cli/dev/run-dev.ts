import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type Style, styleFor } from '../style.js'
import { lineOf, type Note } from './account.js'
import { DEMO } from './demo.js'
import { startReplica } from './replica.js'
import { Replicas } from './replicas.js'

/** Runs the demo until Ctrl-C, and leaves nothing behind. */
export async function runDev(replicas: number): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'belfry-dev-'))
  const style = styleFor(process.stdout)
  const print = (line: string | undefined) => {
    if (line !== undefined) process.stdout.write(`${line}\n`)
  }
  // Whatever way the process ends, the folder goes with it.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  print(headline(replicas, style))
  const path = join(folder, 'belfry.db')
  if (replicas === 1) {
    const belfry = await startReplica(path, (note: Note) => print(lineOf(note, undefined, style)))
    await interrupted(() => {})
    await belfry.stop()
  } else {
    const group = new Replicas(path, replicas, style, print)
    await group.start()
    await interrupted((key) => group.press(key))
    await group.stop()
  }
  print(style.dim('bye'))
}

function headline(replicas: number, style: Style): string {
  const place = replicas === 1 ? 'one process' : `${replicas} processes`
  const schedules = DEMO.map(({ id, about }) => `  ${id.padEnd(10)} ${style.dim(about)}`)
  const keys =
    replicas === 1
      ? []
      : [`Press ${style.bold(`1–${replicas}`)} to kill an instance (kill -9), again to bring it back.`]
  return [
    `${style.bold('Belfry')} ${style.dim(`· ${place} · one SQLite file`)}`,
    ...schedules,
    ...keys,
    style.dim('Ctrl-C ends it and leaves nothing behind.'),
    '',
  ].join('\n')
}

/** Resolves on Ctrl-C, SIGTERM or q; other keys are handed on. */
function interrupted(onKey: (key: string) => void): Promise<void> {
  return new Promise((resolve) => {
    const { stdin } = process
    const finish = () => {
      if (stdin.isTTY) stdin.setRawMode(false)
      stdin.pause()
      resolve()
    }
    process.once('SIGINT', finish)
    process.once('SIGTERM', finish)
    if (!stdin.isTTY) return
    stdin.setRawMode(true)
    stdin.on('data', (data: Buffer) => {
      const key = data.toString()
      if (key === '\u0003' || key === 'q') finish()
      else onKey(key)
    })
  })
}
