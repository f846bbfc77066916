// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

// mounts are changes of the tree of mounts, which is what confines a command.
var mounts = []attempt{
	both("mount the host's disks", eperm, `result = each(lambda a: call('mount', a[0], b'/workspace', a[1], 0, 0),
    [(b'/dev/vda', b'ext4'), (b'/dev/sda1', b'ext4'), (b'/dev/loop0', b'btrfs'), (b'254:0', b'xfs')])`),
	both("mount control file systems", eperm, `result = each(lambda k: call('mount', b'none', b'/workspace', k, 0, 0),
    [b'proc', b'sysfs', b'cgroup', b'cgroup2', b'debugfs', b'tracefs', b'securityfs', b'bpf', b'devtmpfs', b'devpts', b'mqueue', b'tmpfs', b'overlay', b'binfmt_misc', b'fuse'])`),
	both("mount a v1 control group with a release agent", eperm, `call('mount', b'cgroup', b'/workspace', b'cgroup', 0, b'rdma')`),
	both("bind process 1's root", eperm, `call('mount', b'/proc/1/root', b'/workspace', 0, 0x1000, 0)`),
	both("make the root writable again", eperm, `result = each(lambda p: call('mount', b'none', p, 0, 0x20 | 0x1000, 0), [b'/', b'/usr', b'/proc/sys', b'/dev', b'/sys'])`),
	both("make the root writable again by the new call", eperm, `attr = ctypes.create_string_buffer(struct.pack('QQQQ', 0, 1, 0, 0))
result = each(lambda p: call('mount_setattr', AT, p, 0x8000, attr, 32), [b'/', b'/proc', b'/dev', b'/sys'])`),
	both("share mounts with the host", eperm, `call('mount', b'none', b'/', 0, 0x4000 | 0x100000, 0)`),
	both("unmount what covers the root", eperm, `result = each(lambda p: call('umount2', p, 2), [b'/', b'/proc', b'/dev', b'/sys', b'/workspace', b'/tmp', b'/dev/shm'])`),
	both("swap the root", eperm, `call('pivot_root', b'.', b'.')`),
	both("open a file system by the new calls", eperm, `result = each(lambda k: call('fsopen', k, 0), [b'ext4', b'btrfs', b'proc', b'cgroup2', b'overlay', b'tmpfs'])`),
	both("use the other new mount calls", eperm, `result = each(lambda n: call(n, AT, b'/', AT, b'/workspace', 0, 0),
    ['open_tree', 'move_mount', 'fspick', 'fsconfig', 'fsmount'])`),
	both("clone a tree of mounts", eperm, `result = each(lambda p: call('open_tree', AT, p, 1 | 0x8000), [b'/', b'/proc', b'/dev'])`),
	both("clone a tree of mounts by the newest call", eperm+" or "+enosys, `call('open_tree_attr', AT, b'/', 1, 0, 0)`),
	both("mount by a set-user-id helper", eperm, `try:
    tool = [p for p in ('/bin/mount', '/usr/bin/mount') if os.path.exists(p)][0]
except IndexError:
    raise PermissionError(errno.EPERM, 'there is none') # nothing to try
if subprocess.run([tool, '-t', 'tmpfs', 'none', '/workspace'], capture_output=True).returncode: raise PermissionError(errno.EPERM, tool)`),
}

// unreachable is what a call of a file system's own comes to that is kept from commands,
// or that is not there.
const unreachable = eperm + " or REFUSED ENOTTY"

// layerCalls are ways past the overlay to the file system that holds all
// sandboxes' layers, its quotas and its snapshots.
var layerCalls = []attempt{
	both("call the store's file system on directories and files", unreachable, btrfs+`result = each(lambda a: call('ioctl', a[0], a[1], args()), [(f, c) for f in targets for c in calls])`),
	both("make a subvolume in the store", unreachable, btrfs+`result = each(lambda f: call('ioctl', f, 0x5000940e, named(b'sub')), targets)`),
	both("snapshot a layer", unreachable, btrfs+`result = each(lambda c: call('ioctl', targets[0], c, named(b'snap', targets[0])), [0x50009401, 0x50009417])`),
	both("delete a layer", unreachable, btrfs+`result = each(lambda c: call('ioctl', targets[0], c, named(b'upper')), [0x5000940f, 0x5000943f])`),
	both("lift the layer's quota", unreachable, btrfs+`result = each(lambda c: call('ioctl', targets[0], c, args()), [0xc0109428, 0x8030942b, 0x4010942a, 0x40189429])`),
	both("search the store's trees", unreachable, btrfs+`result = each(lambda c: call('ioctl', targets[0], c, args()), [0xd0009411, 0xc0709411, 0xd0009412, 0xd000943e, 0xd000943d])`),
	both("make a file immutable or append-only", eperm, `f = os.open('/workspace/flags', os.O_RDWR | os.O_CREAT)
result = each(lambda v: call('ioctl', f, 0x40086602, ctypes.create_string_buffer(struct.pack('i', v))), [0x10, 0x20])`),
	both("change a file's project, which quotas count by", einval+" or "+eperm+" or REFUSED EOPNOTSUPP or REFUSED ENOTTY", `f = os.open('/workspace/project', os.O_RDWR | os.O_CREAT)
call('ioctl', f, 0x401c5820, ctypes.create_string_buffer(struct.pack('IIIII8s', 0, 0, 0, 42, 0, b'')))`),
	both("freeze or trim the file system", eperm+" or REFUSED ENOTTY", `f = os.open('/workspace', os.O_RDONLY)
result = each(lambda c: call('ioctl', f, c, ctypes.create_string_buffer(24)), [0xc0045877, 0xc0045878])`),
	both("set the overlay's own attributes", eperm, `open('/workspace/private', 'w').close()
result = each(lambda n: os.setxattr('/workspace/private', n, b'y'), ['trusted.overlay.opaque', 'trusted.overlay.redirect', 'trusted.overlay.origin',
    'trusted.overlay.metacopy', 'trusted.x'])`),
	both("see the overlay's own attributes", "[]", `result = str([n for d in ('/', '/workspace', '/etc', '/home') for n in os.listxattr(d) if 'overlay' in n])`),
	unless(unguarded, both("set attributes of security modules", eperm, `open('/workspace/private', 'w').close()
result = each(lambda n: os.setxattr('/workspace/private', n, b'y'), ['security.evil', 'security.ima', 'security.evm'])`)),
	both("hide the image's files by an attribute of one's own", "SEEN", `os.makedirs('/workspace/o', exist_ok=True)
os.setxattr('/workspace/o', 'user.overlay.opaque', b'y')
result = 'SEEN' if os.listdir('/usr/bin') and os.path.isdir('/workspace/o') else 'HIDDEN'`),
	both("find the layers' directories", "NONE", `found = [d for d in ('/upper', '/work', '/u', '/w', '/lower', '/workspace/upper', '/workspace/work') if os.path.exists(d)]
result = ', '.join(found) or 'NONE'`),
}

// volumeCalls are the same on a volume, which is a directory of the store itself.
var volumeCalls = []attempt{
	both("call the store's file system", unreachable, btrfs+`result = each(lambda a: call('ioctl', a[0], a[1], args()), [(f, c) for f in inVolume() for c in calls])`),
	both("make a subvolume, which no limit counts", unreachable, btrfs+`result = each(lambda c: call('ioctl', inVolume()[0], c, named(b'sub')), [0x5000940e, 0x50009418, 0x5000940e | 1 << 32])`),
	both("snapshot the volume", unreachable, btrfs+`result = each(lambda c: call('ioctl', inVolume()[0], c, named(b'snap', inVolume()[0])), [0x50009401, 0x50009417])`),
	both("lift the volume's limit", unreachable, btrfs+`result = each(lambda c: call('ioctl', inVolume()[0], c, args()), [0xc0109428, 0x8030942b, 0x4010942a, 0x40189429])`),
	both("look up names and sizes of the store", unreachable, btrfs+`result = each(lambda c: call('ioctl', inVolume()[0], c, args()), [0xd0009411, 0xc0709411, 0xd0009412, 0xd000943e, 0xd000943d, 0x81f8943c, 0xc0109414, 0x8400941f])`),
	both("freeze or trim the store", eperm+" or REFUSED ENOTTY", btrfs+`result = each(lambda c: call('ioctl', inVolume()[0], c, ctypes.create_string_buffer(24)), [0xc0045877, 0xc0045878, 0xc0185879])`),
	both("make a file of it immutable", eperm+" or REFUSED EOPNOTSUPP", btrfs+`result = each(lambda v: call('ioctl', inVolume()[1], 0x40086602, ctypes.create_string_buffer(struct.pack('i', v))), [0x10, 0x20])`),
	both("set attributes of overlays", eperm, `open('/workspace/volume/attributes', 'w').close()
result = each(lambda n: os.setxattr('/workspace/volume/attributes', n, b'y'), ['trusted.overlay.opaque', 'trusted.x'])`),
	unless(unguarded, both("set attributes of security modules on it", eperm, `open('/workspace/volume/modules', 'w').close()
os.setxattr('/workspace/volume/modules', 'security.x', b'y')`)),
	both("give a file of it capabilities", eperm, `open('/workspace/volume/capable', 'w').close()
os.setxattr('/workspace/volume/capable', 'security.capability', struct.pack('<5I', 0x02000000, 1 << 21, 0, 0, 0))`),
	both("make a device on it", eperm, `result = each(lambda a: os.mknod('/workspace/volume/%d-%d' % a[1:], a[0] | 0o666, os.makedev(*a[1:])), [(stat.S_IFBLK, 8, 0), (stat.S_IFCHR, 1, 1), (stat.S_IFBLK, 7, 0)])`),
	both("leave it by a handle", eperm, `buf = ctypes.create_string_buffer(struct.pack('Ii', 128, 0) + b'x' * 128)
call('open_by_handle_at', os.open('/workspace/volume', os.O_RDONLY), buf, 0)`),
	both("leave it upwards", "the sandbox's own", `os.chdir('/workspace/volume')
for n in range(30): os.chdir('..')
result = "the sandbox's own" if os.path.samefile('.', '/') and os.path.samefile('/workspace/volume/..', '/workspace') else os.getcwd()`),
	both("clone a file of it", "DONE or REFUSED EOPNOTSUPP or REFUSED ENOTSUP or REFUSED ENOTTY", btrfs+`call('ioctl', os.open('/workspace/volume/copy', os.O_RDWR | os.O_CREAT, 0o666), 0x40049409, inVolume()[1])`),
}

// btrfs defines targets, and calls: resize, scan, sync, device and tree calls,
// default subvolume, send, receive, scrub, balance.
const btrfs = `open('/workspace/target', 'w').close()
targets = [os.open(p, os.O_RDONLY) for p in ('/workspace', '/workspace/target', '/', '/tmp', '/usr/bin')]
calls = [0x50009403, 0x50009402, 0x9408, 0x5000940a, 0x5000940b, 0x40089413, 0xc0109414, 0x8008941a, 0x4008941a, 0x40489426,
    0xc400941b, 0xc4009420, 0xd000941e, 0x8400941f, 0x40089416, 0x80089418, 0xc0c89425, 0x81f8943c, 0xc038942c]
def inVolume(): return [os.open('/workspace/volume', os.O_RDONLY), os.open('/workspace/volume/file-%d' % os.getuid(), os.O_RDWR | os.O_CREAT, 0o666)]
def args(): return ctypes.create_string_buffer(4096)
def named(name, fd=0): return ctypes.create_string_buffer(struct.pack('q', fd) + name, 4096)
`
