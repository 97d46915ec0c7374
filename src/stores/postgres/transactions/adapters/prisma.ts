import { type CallerTransaction, rowsIn } from './caller-transaction.js'

/** The methods of the client in Prisma's `$transaction` that Belfry uses. */
export interface PrismaTransaction {
  $queryRawUnsafe(sql: string, ...values: string[]): PromiseLike<unknown>
}

/** `prisma.$transaction((tx) => job.enqueue(payload, { tx: fromPrisma(tx) }))` */
export function fromPrisma(tx: PrismaTransaction): CallerTransaction {
  return { query: async (sql, values) => rowsIn(await tx.$queryRawUnsafe(sql, ...values)) }
}
