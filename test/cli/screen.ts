/** A terminal of 80 by 24 with a shell in it. */
import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect } from 'vitest'
import { cleanEnv, MAIN } from '../e2e/service.js'
import { tmuxProgram } from '../servers/tmux.js'

const PATIENCE = { timeout: 60_000, interval: 50 }

export class Screen {
  readonly #socket: string
  readonly #raw: string

  constructor(folder: string, env: Record<string, string> = {}) {
    this.#socket = join(folder, `tmux-${Math.random().toString(36).slice(2)}`)
    this.#raw = `${this.#socket}.raw`
    writeFileSync(join(folder, 'belfry'), `#!/bin/sh\nexec "${process.execPath}" "${MAIN}" "$@"\n`, { mode: 0o755 })
    const given = cleanEnv({ PATH: `${folder}:${process.env.PATH ?? ''}`, LANG: 'C.UTF-8', PS1: '$ ', ...env })
    delete given.NO_COLOR
    if (env.NO_COLOR !== undefined) given.NO_COLOR = env.NO_COLOR
    const args = ['-f', '/dev/null', 'new-session', '-d', '-x', '80', '-y', '24', 'env', `PS1=$ `, 'sh']
    execFileSync(tmuxProgram(), ['-u', '-S', this.#socket, ...args], { env: given })
    this.#tmux('pipe-pane', `cat >> '${this.#raw}'`)
  }

  type(text: string, ...keys: string[]): void {
    this.#tmux('send-keys', '-l', text)
    this.#tmux('send-keys', ...(keys.length === 0 ? ['Enter'] : keys))
  }

  press(key: string): void {
    this.#tmux('send-keys', key)
  }

  get lines(): string[] {
    return this.#tmux('capture-pane', '-p').split('\n')
  }

  get painted(): string {
    return this.#tmux('capture-pane', '-p', '-e')
  }

  /** All bytes ever written to the terminal. */
  get raw(): string {
    return readFileSync(this.#raw, 'utf8')
  }

  async shows(what: RegExp): Promise<void> {
    await expect.poll(() => this.lines.join('\n'), PATIENCE).toMatch(what)
  }

  close(): void {
    this.#tmux('kill-server')
  }

  #tmux(...args: string[]): string {
    return execFileSync(tmuxProgram(), ['-u', '-S', this.#socket, ...args], { encoding: 'utf8' })
  }
}
