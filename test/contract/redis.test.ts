import { storeContract } from '../../src/testing/store-contract.js'
import { freshRedis } from '../servers/fresh-redis.js'

storeContract({ name: 'redis', open: () => freshRedis() })
storeContract({ name: 'redis in three shards', open: () => freshRedis(3) })
