/** The paths in `docs/architecture.md` exist, in its section "Three walks" and elsewhere. */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))
/** A path in backticks that has a folder: `engine/loop.ts`, `stores/redis/locks/acquire.lua`. */
const PATH = /`([^`\s]+\/[^`\s]+\.(?:ts|js|sql|lua))`/g
/** A walk with fewer files means that this test misread the page. */
const LEAST_FILES = 8

const text = readFileSync(join(ROOT, 'docs/architecture.md'), 'utf8')
const section = /^## Three walks\n(.*?)^## /ms.exec(text)?.[1] ?? ''
const walks = section
  .split(/^### /m)
  .slice(1)
  .map((walk) => ({
    title: walk.slice(0, walk.indexOf('\n')),
    files: [...walk.matchAll(/^\d+\. `(src\/[^`]+)`: /gm)].map(([, file = '']) => file),
    stated: Number(/^(\d+) files\.$/m.exec(walk)?.[1]),
  }))

it('there are three walks', () => {
  expect(walks).toHaveLength(3)
})

describe.each(walks)('$title', ({ files, stated }) => {
  it('names files that exist, each once', () => {
    expect(files.length).toBeGreaterThanOrEqual(LEAST_FILES)
    expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([])
    expect(new Set(files).size).toBe(files.length)
  })

  it('states how many files it names', () => {
    expect(stated).toBe(files.length)
  })
})

it('each path resolves in the repository or below src/', () => {
  const paths = [...text.matchAll(PATH)].map(([, path = '']) => path)
  expect(paths.length).toBeGreaterThan(LEAST_FILES * walks.length)
  expect(paths.filter((path) => !existsSync(join(ROOT, path)) && !existsSync(join(ROOT, 'src', path)))).toEqual([])
})
