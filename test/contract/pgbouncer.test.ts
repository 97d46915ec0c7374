import { storeContract } from '../../src/testing/store-contract.js'
import { freshPostgres } from '../servers/fresh-postgres.js'

storeContract({ name: 'postgres through pgbouncer', open: () => freshPostgres('pgbouncer') })
