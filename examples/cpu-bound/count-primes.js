/** @param {import('belfry').ThreadContext<{ below: number }>} context */
export default function countPrimes({ payload, signal }) {
  let count = 0
  for (let number = 2; number < payload.below; number += 1) {
    // In a worker thread the signal also fires during a loop that never yields.
    signal.throwIfAborted()
    if (isPrime(number)) count += 1
  }
  return count
}

/** @param {number} number */
function isPrime(number) {
  for (let divisor = 2; divisor * divisor <= number; divisor += 1) {
    if (number % divisor === 0) return false
  }
  return true
}
