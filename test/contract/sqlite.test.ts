import { storeContract } from '../../src/testing/store-contract.js'
import { freshFile } from '../stores/fresh-file.js'

storeContract({ name: 'sqlite', open: async () => freshFile() })
