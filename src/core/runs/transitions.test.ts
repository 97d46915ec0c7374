import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { RUN_STATES } from './run.js'
import { mayBecome } from './transitions.js'

const read = (path: string) => readFileSync(new URL(path, import.meta.url), 'utf8')

/** Reads `a ⇄ b → c | d` as pairs of states. Text after two spaces is a remark. */
function pairsIn(diagram: readonly string[]): Set<string> {
  const pairs = new Set<string>()
  for (const line of diagram) {
    const parts = (line.split('  ')[0] ?? '').split(/ (→|⇄) /)
    for (let at = 0; at + 2 < parts.length; at += 2) {
      const [from = [], to = []] = [parts[at]?.split(' | '), parts[at + 2]?.split(' | ')]
      for (const one of from) for (const other of to) pairs.add(`${one} ${other}`)
      if (parts[at + 1] === '⇄') for (const one of from) for (const other of to) pairs.add(`${other} ${one}`)
    }
  }
  return pairs
}

const diagramOf = (text: string) =>
  text.split('\n').flatMap((line) => /^(?: \* {4,}| {0,4})(\w.*[→⇄].*)$/.exec(line)?.[1] ?? [])

it('the diagram shows exactly the permitted transitions', () => {
  const allowed = RUN_STATES.flatMap((from) =>
    RUN_STATES.filter((to) => mayBecome(from, to)).map((to) => `${from} ${to}`),
  )
  expect([...pairsIn(diagramOf(read('./transitions.ts')))].sort()).toEqual(allowed.sort())
})

it('the architecture page has the same diagram', () => {
  const [page, code] = [read('../../../docs/architecture.md'), read('./transitions.ts')]
  const section = /## Run states\n.*?```\n(.*?)```/s.exec(page)?.[1] ?? ''
  expect(diagramOf(section)).toEqual(diagramOf(code))
})
