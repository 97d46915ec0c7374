// @ts-check
/** A server of a cluster: a process that can be stopped, killed, frozen and restarted at the same address. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

/**
 * The watchdog outlives the tests briefly: when its input closes, because the tests ended or were killed, it kills the
 * server, even a frozen one. It prints the server's process id, and ends with the server.
 */
const WATCHDOG = `
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
  /** @type {{ watchdog: import('node:child_process').ChildProcess, pid: number, ended: Promise<unknown> } | undefined} */
  #running

  /**
   * @param {{ name: string, folder: string, command: readonly string[], environment?: Record<string, string>, as?: {
   * uid: number, gid: number } }} options
   */
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
    const watchdog = spawn('sh', ['-c', WATCHDOG, 'sh', ...command], { ...options, stdio: ['pipe', 'pipe', 'ignore'] })
    const ended = once(watchdog, 'exit')
    const [line] = await once(createInterface(watchdog.stdout), 'line')
    this.#running = { watchdog, pid: Number(line), ended }
  }

  /** @param {NodeJS.Signals} signal */
  signal(signal) {
    if (this.#running === undefined) throw new Error(`${this.#options.name} is not running`)
    process.kill(this.#running.pid, signal)
  }

  /** Ends the server, and waits until it has exited. @param {'SIGTERM' | 'SIGKILL'} signal */
  async end(signal) {
    const running = this.#running
    if (running === undefined) return
    this.signal(signal)
    await running.ended
    this.#running = undefined
  }

  /** The last lines of the server's output, for the message of a failing test. */
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
