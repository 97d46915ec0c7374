import { join } from 'node:path'
import type { Belfry } from '../../belfry.js'
import { type Style, styleFor } from '../terminal/style.js'
import { answerLine, lineOf, type Note } from './account.js'
import { DEMO } from './demo.js'
import type { DemoApi } from './demo-api.js'
import { makeDemoFolder } from './demo-folder.js'
import { Interruption } from './interruption.js'

/** Runs the demo until Ctrl-C, and leaves nothing behind. */
export async function runDev(replicas: number): Promise<void> {
  // First of all, so that there is no moment at which Ctrl-C would leave something behind.
  const interruption = new Interruption()
  const folder = makeDemoFolder()
  const style = styleFor(process.stdout)
  const print = (line: string | undefined) => {
    if (line !== undefined && process.stdout.writable) process.stdout.write(`${line}\n`)
  }
  print(headline(replicas, style))
  const path = join(folder, 'belfry.db')
  await (replicas === 1
    ? runAlone(path, interruption, style, print)
    : runTogether(path, replicas, interruption, style, print))
  print(style.dim('bye'))
}

type Print = (line: string | undefined) => void

async function runAlone(path: string, interruption: Interruption, style: Style, print: Print): Promise<void> {
  // Loaded when they are needed: who waits for the headline waits for nothing else.
  const { startReplica } = await import('./replica.js')
  const belfry = await startReplica(path, Date.now(), (note: Note) => print(lineOf(note, undefined, style)))
  const api = await startApi(belfry, style, print)
  await interruption.happened
  await api.close()
  await belfry.stop()
}

async function startApi(belfry: Belfry, style: Style, print: Print): Promise<DemoApi> {
  const { serveDemo } = await import('./demo-api.js')
  const api = await serveDemo(belfry, (asked) => print(answerLine(asked, style)))
  print(
    [
      `${style.bold('API')}  ${style.cyan(api.url)} ${style.dim('· in another terminal:')}`,
      `     curl ${api.url}/v1/schedules`,
      `     curl -X POST ${api.url}/v1/schedules/hello/trigger`,
    ].join('\n'),
  )
  // The first to ask: its answer stands beside the ticks, like those of all who ask later.
  await fetch(`${api.url}/v1/schedules/hello`).then((response) => response.arrayBuffer())
  return api
}

async function runTogether(
  path: string,
  count: number,
  interruption: Interruption,
  style: Style,
  print: Print,
): Promise<void> {
  const { Replicas } = await import('./replicas.js')
  const group = new Replicas(path, count, style, print)
  interruption.onKey = (key) => group.press(key)
  // Before the folder is removed: whoever presses Ctrl-C twice does not wait for them.
  process.prependOnceListener('exit', () => group.kill())
  await Promise.race([group.start(), interruption.happened])
  const watcher = await startWatcher(path)
  const api = await startApi(watcher, style, print)
  await interruption.happened
  await api.close()
  await watcher.stop()
  await group.stop()
}

/** Takes no part: whichever replica is killed, the API goes on. */
async function startWatcher(path: string): Promise<Belfry> {
  const [{ createBelfry }, { sqlite }, { quietSqlite }] = await Promise.all([
    import('../../belfry.js'),
    import('../../stores/sqlite/index.js'),
    import('../settings/quiet-sqlite.js'),
  ])
  quietSqlite()
  const belfry = createBelfry({ store: sqlite({ path }), roles: [] })
  await belfry.start()
  return belfry
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
    style.dim('Each line: when, what, for which tick. Ctrl-C ends it and leaves nothing behind.'),
    '',
  ].join('\n')
}
