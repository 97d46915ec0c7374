import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { belfry } from './cli-setup.js'

/** The completions that bash offers after these words. */
async function offered(script: string, ...words: string[]): Promise<string[]> {
  const line = words.map((word) => `'${word}'`).join(' ')
  const ask = `source ${script}; COMP_WORDS=(belfry ${line}); COMP_CWORD=${words.length}; _belfry; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { stdout } = await promisify(execFile)('bash', ['-c', ask])
  return stdout.trim().split('\n')
}

it('completes commands, options and their values in bash', { timeout: 180_000 }, async () => {
  const { code, stdout, stderr } = await belfry(['completion', 'bash'])
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const script = join(tmpdir(), `belfry-completion-${process.pid}`)
  writeFileSync(script, stdout)
  expect(await offered(script, 're')).toEqual(['resume', 'retry', 'redis'])
  expect(await offered(script, 'ls', '--st')).toEqual(['--state', '--store'])
  expect(await offered(script, 'ls', '--state', 'p')).toEqual(['paused'])
  expect(await offered(script, 'runs', '-n', '5', '--output', 'json')).toEqual(['json', 'jsonl'])
  expect(await offered(script, 'runs', '-o', 't')).toEqual(['table'])
  expect(await offered(script, 'ls', '--state', '=', 'p')).toEqual(['paused'])
  expect(await offered(script, 'lock', 'exec', 'name', '--kill')).toEqual(['--kill-after'])
  expect(await offered(script, 'completion', '')).toEqual(expect.arrayContaining(['bash', 'zsh', 'fish']))
})

it('offers the same words in zsh and fish', { timeout: 180_000 }, async () => {
  const [zsh, fish] = await Promise.all([belfry(['completion', 'zsh']), belfry(['completion', 'fish'])])
  expect(zsh.stdout).toMatch(/^#compdef belfry\n/)
  expect(zsh.stdout).toContain("'trigger:run a schedule now'")
  expect(fish.stdout).toContain("-a trigger -d 'run a schedule now'")
  expect(fish.stdout).toMatch(/complete -c belfry -n '.*lock exec.*' -l kill-after /)
})
