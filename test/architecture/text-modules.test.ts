import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { textModules, textOf } from '../../scripts/text-modules.js'

let folder: string

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'belfry-texts-'))
})

afterEach(() => {
  rmSync(folder, { recursive: true })
})

function write(name: string, text: string): string {
  const file = join(folder, 'stores/redis', name)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  return file
}

it('a text becomes a module that exports it', () => {
  const file = write('runs/claim.sql', 'select `1`, "two"\n')
  expect(textModules().load(file)?.code).toBe('export default "select `1`, \\"two\\"\\n"\n')
  expect(textModules().load(write('runs/claim.ts', ''))).toBeUndefined()
})

it('an included part replaces its include line, together with its own includes', () => {
  write('lua/time.lua', 'local now = 1\n')
  write('lua/runs.lua', '-- include: lua/time\nlocal runs = now\n')
  const file = write('runs/claim.lua', '-- include: lua/runs\nreturn runs\n')
  expect(textOf(file)).toBe('local now = 1\nlocal runs = now\nreturn runs\n')
})

it('a part that two others include appears once', () => {
  write('lua/time.lua', 'local now = 1\n')
  write('lua/runs.lua', '-- include: lua/time\nlocal runs = now\n')
  const file = write('runs/claim.lua', '-- include: lua/time\n-- include: lua/runs\nreturn runs\n')
  expect(textOf(file).match(/local now/g)).toHaveLength(1)
})

it('a part that does not exist is an error with its file name', () => {
  const file = write('runs/claim.lua', '-- include: lua/missing\n')
  expect(() => textOf(file)).toThrow('lua/missing.lua')
})
