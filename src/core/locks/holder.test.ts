import { describe, expect, it } from 'vitest'
import { describeHolders, holderName, newHolder, uniqueHolder, withoutPlace } from './holder.js'

const PLACE = { host: 'web-1', pid: 4711 }

describe('the holder of a lock', () => {
  it('names itself, its host and its process, and is unique', () => {
    expect(newHolder({ as: 'nightly import', ...PLACE })).toMatch(/^nightly import on web-1 pid 4711 #[0-9a-f]{12}$/)
    expect(holderName(newHolder(PLACE))).toBe('web-1 pid 4711')
    expect(newHolder(PLACE)).not.toBe(newHolder(PLACE))
  })

  it('is shortened without its mark, and has no control characters', () => {
    const holder = uniqueHolder(`a\n${'b'.repeat(300)}`, 200)
    expect(holder).toHaveLength(200)
    expect(holder).toMatch(/^a b+ #[0-9a-f]{12}$/)
  })

  it('is shown without host and process to those who may not see them', () => {
    expect(holderName(withoutPlace(newHolder({ as: 'import', ...PLACE })))).toBe('import')
    expect(holderName(withoutPlace(newHolder(PLACE)))).toBe('a process')
    expect(withoutPlace('deploy on web-1 pid 4711')).toBe('deploy on web-1 pid 4711')
  })

  it('is described with since when and until when', () => {
    const times = { acquiredAt: Date.UTC(2026, 0, 1, 9), expiresAt: Date.UTC(2026, 0, 1, 9, 0, 15) }
    const holder = newHolder({ as: 'import', ...PLACE })
    const until = 'since 2026-01-01T09:00:00Z, until 2026-01-01T09:00:15Z unless it is renewed'
    expect(describeHolders([{ holder, ...times }])).toBe(`import on web-1 pid 4711 ${until}`)
    expect(describeHolders([{ holder: 'run:7-ab:9', run: '7-ab', ...times }])).toBe(`run 7-ab ${until}`)
    expect(describeHolders([{ holder: 'run:7-ab:9', ...times }])).toBe(`a run ${until}`)
    const one = { holder, ...times }
    expect(describeHolders([one, one, one])).toContain('and by 2 more')
    expect(describeHolders([])).toBe('another holder, which has released it since')
  })
})
