/** Runs `belfry serve` as a process, with its output and signals, and sends requests with curl. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { curlProgram } from '../servers/curl.js'

export const MAIN = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url))

/** The environment of this process, without settings for Belfry. */
export function cleanEnv(env: Record<string, string> = {}): Record<string, string | undefined> {
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith('BELFRY_'))
  return { ...Object.fromEntries(inherited), ...env }
}

export class Service {
  output = ''
  url = ''
  readonly #child: ChildProcess
  readonly #exited: Promise<readonly unknown[]>

  constructor(args: readonly string[], env: Record<string, string> = {}) {
    const stdio = ['ignore', 'pipe', 'pipe'] as const
    const child = spawn(process.execPath, [MAIN, 'serve', ...args], { stdio: [...stdio], env: cleanEnv(env) })
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text
      })
    }
    this.#child = child
    this.#exited = once(child, 'close')
  }

  static async start(args: readonly string[], env: Record<string, string> = {}): Promise<Service> {
    const service = new Service(args, env)
    await expect.poll(() => service.output, { timeout: 30_000, interval: 20 }).toMatch(/listening on http/)
    service.url = /listening on (http:\/\/[^\s"]+)/.exec(service.output)?.[1] ?? ''
    return service
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** The exit code, or the signal that ended the process. */
  async exited(): Promise<unknown> {
    const [code, signal] = await this.#exited
    return code ?? signal
  }

  async stop(): Promise<unknown> {
    this.kill('SIGTERM')
    return this.exited()
  }
}

export interface Answer {
  readonly status: number
  readonly text: string
}

/** Runs curl; the arguments go before the URL. */
export async function curl(url: string, ...args: string[]): Promise<Answer> {
  const { stdout } = await run(['-sS', '--max-time', '20', '-w', '\n%{http_code}', ...args, url])
  const at = stdout.lastIndexOf('\n')
  return { status: Number(stdout.slice(at + 1)), text: stdout.slice(0, at) }
}

export function jsonBody(method: string, body: unknown): string[] {
  return ['-X', method, '-H', 'Content-Type: application/json', '-d', JSON.stringify(body)]
}

export function run(args: readonly string[], input = ''): Promise<{ readonly code: number; readonly stdout: string }> {
  return new Promise((resolve) => {
    const child = execFile(curlProgram(), args, { maxBuffer: 2 ** 26 }, (error, stdout) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout }),
    )
    // Most commands do not read stdin, and may exit before this is written.
    child.stdin?.on('error', () => {})
    if (input === '') child.stdin?.end()
    else child.stdin?.end(input)
  })
}

/** Runs the command line as a process. */
export function belfry(
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<{ readonly code: number; readonly stdout: string; readonly stderr: string }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [MAIN, ...args], { env: cleanEnv(env) }, (error, stdout, stderr) =>
      resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr }),
    )
  })
}
