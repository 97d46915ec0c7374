import { join } from 'node:path'
import type { Belfry } from '../../belfry.js'
import { writeLine } from '../terminal/clean-text.js'
import { type Style, styleFor } from '../terminal/style.js'
import { DEMO } from './demo.js'
import type { DemoApi } from './demo-api.js'
import { makeDemoFolder } from './demo-folder.js'
import { DemoInput } from './demo-input.js'
import { type RunNote, requestLine, runLine } from './run-lines.js'

/** Runs the demo until Ctrl-C, and removes its files. */
export async function runDev(replicas: number): Promise<void> {
  // The signal listeners come first, so that Ctrl-C always removes the folder.
  const input = new DemoInput()
  const folder = makeDemoFolder()
  const style = styleFor(process.stdout)
  const print = (line: string | undefined) => {
    if (line !== undefined && process.stdout.writable) writeLine(process.stdout, `${line}`)
  }
  print(headline(replicas, style))
  const path = join(folder, 'belfry.db')
  await (replicas === 1 ? runAlone(path, input, style, print) : runTogether(path, replicas, input, style, print))
  print(style.dim('stopped'))
}

type Print = (line: string | undefined) => void

async function runAlone(path: string, input: DemoInput, style: Style, print: Print): Promise<void> {
  // Loads the engine only now, so that the headline appears first.
  const { startReplica } = await import('./replica.js')
  const belfry = await startReplica(path, Date.now(), (note: RunNote) => print(runLine(note, undefined, style)))
  const api = await startApi(belfry, style, print)
  await input.ended
  await api.close()
  await belfry.stop()
}

async function startApi(belfry: Belfry, style: Style, print: Print): Promise<DemoApi> {
  const { serveDemo } = await import('./demo-api.js')
  const api = await serveDemo(belfry, (request) => print(requestLine(request, style)))
  print(
    [
      `${style.bold('API')}  ${style.cyan(api.url)} ${style.dim('· in another terminal:')}`,
      `     curl ${api.url}/v1/schedules`,
      `     curl -X POST ${api.url}/v1/schedules/hello/trigger`,
    ].join('\n'),
  )
  // A first request, so that the user sees how requests appear in the output.
  await fetch(`${api.url}/v1/schedules/hello`).then((response) => response.arrayBuffer())
  return api
}

async function runTogether(path: string, count: number, input: DemoInput, style: Style, print: Print): Promise<void> {
  const { Replicas } = await import('./replicas.js')
  const group = new Replicas(path, count, style, print)
  input.onKey = (key) => group.press(key)
  // Kills the replicas before the folder's own exit listener removes their file, also after a second Ctrl-C.
  process.prependOnceListener('exit', () => group.kill())
  await Promise.race([group.start(), input.ended])
  const observer = await startObserver(path)
  const api = await startApi(observer, style, print)
  await input.ended
  await api.close()
  await observer.stop()
  await group.stop()
}

/** An instance without roles for the API, so that it survives the death of every replica. */
async function startObserver(path: string): Promise<Belfry> {
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
    replicas === 1 ? [] : [`Press ${style.bold(`1–${replicas}`)} to kill an instance (kill -9), again to restart it.`]
  return [
    `${style.bold('Belfry')} ${style.dim(`· ${place} · one SQLite file`)}`,
    ...schedules,
    ...keys,
    style.dim('Each line: time, schedule, its tick, and what happened. Ctrl-C ends the demo and removes its files.'),
    '',
  ].join('\n')
}
