import { describe, expect, it } from 'vitest'
import { manualClock } from '../../testing/manual-clock.js'
import { connectStaggered } from './staggered-connect.js'

const BROKERS = ['one:9092', 'two:9092', 'three:9092']

/** Brokers by their behaviour: a number answers after so many milliseconds, an error fails, and undefined never answers. */
function brokers(answers: Readonly<Record<string, number | Error | undefined>>) {
  const clock = manualClock()
  const asked: string[] = []
  const ended: string[] = []
  const connect = async ([first = '']: readonly string[]) => {
    asked.push(first)
    const answer = answers[first]
    if (answer instanceof Error) throw answer
    await new Promise<void>((resolve) => {
      if (answer !== undefined) clock.after(answer, resolve)
    })
    return first
  }
  const connection = connectStaggered(BROKERS, connect, (late) => ended.push(late), clock)
  return { clock, asked, ended, connection }
}

describe('connecting to Kafka', () => {
  it('connects to one broker, and tries no other while that one answers soon', async () => {
    const { clock, asked, connection } = brokers({ 'one:9092': 100 })
    await clock.advance(5_000)
    expect(await connection).toBe('one:9092')
    expect(asked).toEqual(['one:9092'])
  })

  it('does not wait for a broker that hangs, and closes a connection that comes too late', async () => {
    const { clock, ended, connection } = brokers({ 'one:9092': 3_000, 'two:9092': 50 })
    await clock.advance(600)
    expect(await connection).toBe('two:9092')
    await clock.advance(3_000)
    expect(ended).toEqual(['one:9092'])
  })

  it('tries the next broker at once when one refuses, and fails with the last reason when all do', async () => {
    const refused = new Error('refused')
    const { clock, asked, connection } = brokers({ 'one:9092': refused, 'two:9092': refused, 'three:9092': refused })
    const failed = expect(connection).rejects.toBe(refused)
    await clock.advance(10)
    await failed
    expect(asked).toEqual(BROKERS)
  })

  it('begins each attempt with another broker, and tries all of them', async () => {
    const lists: (readonly string[])[] = []
    await connectStaggered(
      BROKERS,
      async (list) => {
        lists.push(list)
        if (lists.length < 3) throw new Error('refused')
        return list
      },
      () => {},
    )
    expect(lists).toEqual([
      ['one:9092', 'two:9092', 'three:9092'],
      ['two:9092', 'three:9092', 'one:9092'],
      ['three:9092', 'one:9092', 'two:9092'],
    ])
  })
})
