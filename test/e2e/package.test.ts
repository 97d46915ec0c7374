/** What `npm install belfry` brings, and what a clone installs. */
import { execFile } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, it } from 'vitest'

const ROOT = fileURLToPath(new URL('../../', import.meta.url))

interface Packed {
  readonly unpackedSize: number
  readonly files: readonly { readonly path: string }[]
}

async function packed(): Promise<Packed> {
  const npm = ['pack', '--dry-run', '--ignore-scripts', '--json']
  const { stdout } = await promisify(execFile)('npm', npm, { cwd: ROOT, maxBuffer: 2 ** 26 })
  const [found] = JSON.parse(stdout) as [Packed]
  return found
}

/** The files that a page links to, without addresses and anchors. */
function linksOf(page: string): string[] {
  const text = readFileSync(join(ROOT, page), 'utf8').replaceAll(/```.*?```/gs, '')
  return [...text.matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, link = '']) => link.split('#')[0] ?? '')
    .filter((link) => link !== '' && !/^[a-z]+:/.test(link))
    .map((link) => normalize(join(dirname(page), link)))
}

describe('the package', () => {
  it('is small, and holds the target of each link in its pages', { timeout: 60_000 }, async () => {
    const { files, unpackedSize } = await packed()
    const paths = new Set(files.map(({ path }) => path))
    expect(unpackedSize).toBeLessThan(4_400_000)
    expect([...paths].filter((path) => /\.map$|\.test\.|^src\/|^test\//.test(path))).toEqual([])
    const pages = ['README.md', ...readdirSync(join(ROOT, 'docs')).map((page) => `docs/${page}`)]
    const missing = pages.flatMap((page) => linksOf(page).filter((link) => !paths.has(link)))
    expect(missing).toEqual([])
  })

  it('lets an app choose the versions of what it shares', () => {
    const { dependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>
    }
    for (const [name, range] of Object.entries(dependencies)) expect(range, name).toMatch(/^\^\d+\.\d+\.0$/)
  })
})

describe('the declarations', () => {
  it('name no type that only the newest zod has', () => {
    const files = readdirSync(join(ROOT, 'dist/server'), { recursive: true, encoding: 'utf8' })
    const declared = files.filter((file) => file.endsWith('.d.ts'))
    expect(declared.length).toBeGreaterThan(10)
    const newer = declared.filter((file) =>
      readFileSync(join(ROOT, 'dist/server', file), 'utf8').includes('ZodPreprocess'),
    )
    expect(newer).toEqual([])
  })
})

describe('an install in a clone', () => {
  it('needs nothing newer than Node 20, and names no registry', () => {
    const path = join(ROOT, 'package-lock.json')
    expect(existsSync(path)).toBe(true)
    const text = readFileSync(path, 'utf8')
    const { packages } = JSON.parse(text) as { packages: Record<string, { engines?: { node?: string } }> }
    const tooNew = Object.entries(packages).filter(([, { engines }]) => /^>= ?2[1-9]/.test(engines?.node ?? ''))
    expect(tooNew.map(([name]) => name)).toEqual([])
    expect(text).not.toContain('"resolved"')
  })
})
