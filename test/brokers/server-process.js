// @ts-check
/** A server of a cluster: a process that can be ended, killed, frozen and started again at the same place. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/**
 * The keeper outlives the tests for a moment: when its input ends, because they ended or were killed, it kills the server,
 * also a frozen one. It says the server's process id, and ends with the server.
 */
const KEEPER = `
exec 3<&0
"$@" >>"$SERVER_LOG" 2>&1 3<&- </dev/null & server=$!
echo $server
(read -r _ <&3; kill -KILL $server) 2>/dev/null & watch=$!
wait $server
kill $watch 2>/dev/null
`

const LOG_BYTES = 2_000

export class ServerProcess {
  #options
  /** @type {{ keeper: import('node:child_process').ChildProcess, pid: number, ended: Promise<unknown> } | undefined} */
  #running

  /** @param {{ name: string, folder: string, command: readonly string[], environment?: Record<string, string>, as?: { uid: number, gid: number } }} options */
  constructor(options) {
    this.#options = options
    mkdirSync(options.folder, { recursive: true })
  }

  get isRunning() {
    return this.#running !== undefined
  }

  async start() {
    if (this.#running !== undefined) throw new Error(`${this.#options.name} is running already`)
    const { command, folder, environment = {}, as } = this.#options
    closeSync(openSync(this.#log, 'a', 0o666))
    const env = { ...process.env, ...environment, SERVER_LOG: this.#log }
    const options = { cwd: folder, env, detached: true, ...as }
    const keeper = spawn('sh', ['-c', KEEPER, 'sh', ...command], { ...options, stdio: ['pipe', 'pipe', 'ignore'] })
    const ended = once(keeper, 'exit')
    const [line] = await once(createInterface(keeper.stdout), 'line')
    this.#running = { keeper, pid: Number(line), ended }
  }

  /** @param {NodeJS.Signals} signal */
  signal(signal) {
    if (this.#running === undefined) throw new Error(`${this.#options.name} is not running`)
    process.kill(this.#running.pid, signal)
  }

  /**
   * Ends the server, and waits until it has ended.
   * @param {'SIGTERM' | 'SIGKILL'} signal
   */
  async end(signal) {
    const running = this.#running
    if (running === undefined) return
    this.signal(signal)
    await running.ended
    this.#running = undefined
  }

  /** The last lines that it wrote, for a test that fails. */
  get said() {
    try {
      return readFileSync(this.#log, 'utf8').slice(-LOG_BYTES)
    } catch {
      return ''
    }
  }

  get #log() {
    return join(this.#options.folder, `${this.#options.name}.log`)
  }
}
