import { readFileSync, statfsSync } from 'node:fs'

/** Magic numbers of network file systems, where file locks and shared memory do not work between hosts. */
const KINDS: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xfe534d42, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0x5346414f, 'AFS'],
  [0x6b414653, 'AFS'],
  [0x73757245, 'Coda'],
  [0x564c, 'NCP'],
  [0x01021997, '9p'],
  [0x00c36400, 'Ceph'],
  [0x0bd00bd0, 'Lustre'],
  [0x47504653, 'GPFS'],
  [0x19830326, 'BeeGFS'],
  [0x20030528, 'OrangeFS'],
  [0x786f4256, 'VirtualBox shared folder'],
  [0xbacbacbc, 'VMware shared folder'],
])

/** FUSE serves local and network file systems: the list of mounts tells which. */
const FUSE = 0x65735546
const NETWORK_FUSE =
  /^fuse\.(sshfs|ceph|ceph-fuse|glusterfs|s3fs|gcsfuse|rclone|juicefs|davfs2?|mfs|moosefs|lizardfs|smbnetfs|goofys|blobfuse2?|seaweedfs|weed|curlftpfs)$/

export interface FileSystems {
  /** The type that `statfs` returns for a folder. */
  typeOf(folder: string): number | undefined
  /** The lines of `/proc/self/mountinfo`. */
  mounts(): readonly string[]
}

const system: FileSystems = {
  typeOf(folder) {
    try {
      return statfsSync(folder).type
    } catch {
      return undefined
    }
  },
  mounts() {
    try {
      return readFileSync('/proc/self/mountinfo', 'utf8').split('\n')
    } catch {
      return []
    }
  },
}

/** The name of the network file system that a folder is on, if the system tells. The path must have no symlinks. */
export function networkKind(folder: string, { typeOf, mounts }: FileSystems = system): string | undefined {
  const type = typeOf(folder)
  if (type === undefined) return undefined
  if (type >>> 0 !== FUSE) return KINDS.get(type >>> 0)
  return NETWORK_FUSE.exec(mountTypeOf(folder, mounts()))?.[1]
}

/** The type of the innermost mount that contains a folder. Of several mounts in one place, the last counts. */
function mountTypeOf(folder: string, lines: readonly string[]): string {
  let [innermost, type] = ['', '']
  for (const line of lines) {
    const [place = '', kind = ''] = placeAndType(line)
    const within = place === '/' || folder === place || folder.startsWith(`${place}/`)
    if (place !== '' && within && place.length >= innermost.length) [innermost, type] = [place, kind]
  }
  return type
}

/** A line such as `36 35 98:0 / /mnt/data rw,noatime shared:1 - fuse.sshfs host:/ rw`. The dash ends the optional fields. */
function placeAndType(line: string): readonly string[] {
  const [before = '', after = ''] = line.split(' - ')
  const place = before.split(' ')[4]?.replace(/\\(\d{3})/g, (_, octal) => String.fromCharCode(parseInt(octal, 8)))
  return place === undefined ? [] : [place, after.split(' ')[0] ?? '']
}
