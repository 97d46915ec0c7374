import { type CallerTransaction, rowsIn } from './caller-transaction.js'

/** What is called of the client that Prisma gives to the callback of `$transaction`. */
export interface PrismaTransaction {
  $queryRawUnsafe(sql: string, ...values: string[]): PromiseLike<unknown>
}

/** `prisma.$transaction((tx) => job.enqueue(payload, { tx: fromPrisma(tx) }))` */
export function fromPrisma(tx: PrismaTransaction): CallerTransaction {
  return { query: async (sql, values) => rowsIn(await tx.$queryRawUnsafe(sql, ...values)) }
}
