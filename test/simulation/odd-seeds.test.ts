import { describe } from 'vitest'
import { runSeeds } from './seeds.js'

describe('simulated clusters lose no tick, duplicate none, and never overlap committed effects', () => {
  runSeeds(1, 2)
})
