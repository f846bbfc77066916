// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

// hostFiles are ways to the host's file system.
var hostFiles = []attempt{
	both("open a host file by its path", enoent, `open(FACTS['secret'])`),
	both("open a host file below every root that /proc shows", "NOT THERE", `roots = glob.glob('/proc/[0-9]*/root') + glob.glob('/proc/[0-9]*/cwd')
assert len(roots) > 4
result = ', '.join(r for r in roots if os.path.exists(r + FACTS['secret'])) or 'NOT THERE'`),
	both("see the image's own directory on the host", enoent, `os.stat(FACTS['image'])`),
	both("find paths of the host in the lists of mounts", "NONE", `text = ''.join(read('/proc/self/' + n).decode() for n in ('mountinfo', 'mounts', 'mountstats', 'maps'))
assert 'proc' in text
found = [w for w in (os.path.dirname(FACTS['dir']), FACTS['image']) if w in text]
result = ', '.join(found) or 'NONE'`),
	both("find paths of the host in the command line of process 1", "NONE", `text = read('/proc/1/cmdline').decode()
assert text
result = text if '/' in text else 'NONE'`),
	both("climb over the root by ..", "STAYED", `root = os.stat('/')
os.chdir('/')
for _ in range(64): os.chdir('..')
here = os.stat('.')
result = 'STAYED' if (here.st_dev, here.st_ino) == (root.st_dev, root.st_ino) else 'LEFT ' + str(os.listdir('.'))`),
	both("climb over the root from a directory that was moved", "STAYED", `root = os.stat('/')
os.makedirs('/workspace/a/b', exist_ok=True)
os.chdir('/workspace/a/b')
os.rename('/workspace/a/b', '/workspace/b')
for _ in range(64): os.chdir('..')
here = os.stat('.')
os.rmdir('/workspace/b')
result = 'STAYED' if (here.st_dev, here.st_ino) == (root.st_dev, root.st_ino) else 'LEFT ' + str(os.listdir('.'))`),
	both("climb over the root by descriptors and links", "STAYED", `def same(a): return (a.st_dev, a.st_ino) == (root.st_dev, root.st_ino)
root, f = os.stat('/'), os.open('/', os.O_RDONLY)
ways = [os.stat('/..'), os.stat('..', dir_fd=f), os.stat('/../../..'), os.stat('/proc/self/root/..'), os.stat('/proc/self/fd/%d/..' % f), os.stat('/usr/../..')]
os.fchdir(f)
ways += [os.stat('..'), os.stat('/proc/self/cwd/..'), os.fstat(os.open('..', os.O_PATH, dir_fd=os.open('.', os.O_PATH)))]
result = 'STAYED' if all(map(same, ways)) else 'LEFT ' + str(list(map(same, ways)))`),
	both("see a mount that is not below the root", "NONE", `lines = [l.split() for l in read('/proc/self/mountinfo').decode().splitlines()]
known, tops = {l[0] for l in lines}, [l for l in lines if l[4] == '/']
assert len(tops) == 1
result = ', '.join(' '.join(l) for l in lines if l[4] != '/' and l[1] not in known) or 'NONE'`),
	both("take what is over the empty root away", eperm, `result = each(lambda a: call('umount2', *a), [(p, n) for p in (b'/', b'/..', b'.', b'/proc/self/root') for n in (0, 2, 8, 10)])`),
	both("enter one's own mounts anew, from the bottom", eperm, `result = each(lambda p: call('setns', os.open(p, os.O_RDONLY), NEW['mnt']), ['/proc/self/ns/mnt', '/proc/thread-self/ns/mnt'])`),
	both("leave by a second chroot", eperm, `f = os.open('/', os.O_RDONLY)
os.makedirs('/workspace/jail', exist_ok=True)
os.chroot('/workspace/jail')
os.fchdir(f)
for _ in range(64): os.chdir('..')
os.chroot('.')`),
	both("open a host file by its handle", eperm, `import base64
raw = base64.b64decode(FACTS['handle'])
h = ctypes.create_string_buffer(struct.pack('Ii', len(raw), FACTS['handle_type']) + raw)
call('open_by_handle_at', os.open('/workspace', os.O_RDONLY), h, os.O_RDONLY)`),
	both("open the inodes of a file system by guessed handles", eperm, `def f(n):
    h = ctypes.create_string_buffer(struct.pack('IiQ', 8, 1, n))
    call('open_by_handle_at', os.open('/', os.O_RDONLY), h, os.O_RDONLY)
result = each(f, [2, 128, 256, 257])`),
	both("inherit a descriptor of the agent's", "[0, 1, 2]", `result = str(sorted(INHERITED))`),
	both("inherit a working directory outside", "/workspace", `result = os.getcwd()`),
	both("find the agent's socket as a file", "NONE", `found = [] # but sudo's, which is there to be found: see sudo.py
for top in ('/workspace', '/artifacts', '/home', '/root', '/tmp', '/var', '/run', '/dev', '/etc', '/opt', '/srv', '/mnt'):
    for d, dirs, files in os.walk(top):
        for n in files:
            p = os.path.join(d, n)
            if stat.S_ISSOCK(os.lstat(p).st_mode) and p != '/dev/sandpit/sudo.sock': found.append(p)
result = ', '.join(found) or 'NONE'`),
	both("find the agent's log of commands", "NONE", `found = [d for d in ('/log', '/logs', '/.sandpit', '/sandpit', '/run/sandpit', '/var/lib/sandpit', '/var/log/sandpit') if os.path.exists(d)]
result = ', '.join(found) or 'NONE'`),
}

// devices are ways to the host's devices.
var devices = []attempt{
	both("find a device that reaches beyond the sandbox", "NONE", `harmless = {(1, 3), (1, 5), (1, 7), (1, 8), (1, 9), (5, 0), (5, 2)}
seen, found = 0, []
for d, dirs, files in os.walk('/dev'):
    for n in files:
        st = os.lstat(os.path.join(d, n))
        if not (stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode)): continue
        seen += 1
        number = (os.major(st.st_rdev), os.minor(st.st_rdev))
        if stat.S_ISCHR(st.st_mode) and (number in harmless or number[0] == 136): continue
        found.append('%s %s' % (os.path.join(d, n), number))
assert seen >= 6
result = ', '.join(found) or 'NONE'`),
	both("find a device node in the image", "NONE", `found = []
for top in ('/bin', '/boot', '/etc', '/home', '/lib', '/media', '/mnt', '/opt', '/run', '/sbin', '/srv', '/usr/local', '/var'):
    for d, dirs, files in os.walk(top):
        for n in files:
            st = os.lstat(os.path.join(d, n))
            if stat.S_ISCHR(st.st_mode) or stat.S_ISBLK(st.st_mode): found.append(os.path.join(d, n))
result = ', '.join(found) or 'NONE'`),
	both("open the host's devices", enoent, `result = each(lambda n: os.open('/dev/' + n, os.O_RDONLY), ['mem', 'kmem', 'port', 'kmsg', 'fuse', 'kvm', 'vhost-net',
    'vhost-vsock', 'loop-control', 'loop0', 'net/tun', 'vda', 'sda', 'nvme0n1', 'btrfs-control', 'mapper/control', 'userfaultfd', 'uinput',
    'snapshot', 'cpu/0/msr', 'hpet', 'rtc0', 'watchdog', 'nvram', 'snd', 'dri', 'input', 'bus', 'ttyS0', 'tty0', 'console', 'vcs'])`),
	both("make a block device", eperm, `result = each(lambda d: os.mknod(d + '/node', stat.S_IFBLK | 0o666, os.makedev(254, 0)), ['/workspace', '/tmp', '/dev/shm', '/artifacts'])`),
	both("make a character device", eperm, `result = each(lambda d: os.mknod(d + '/node', stat.S_IFCHR | 0o666, os.makedev(1, 1)), ['/workspace', '/tmp', '/dev/shm', '/artifacts'])`),
	both("make a whiteout, which hides the image's files", eperm, `os.mknod('/workspace/whiteout', stat.S_IFCHR, 0)`),
	both("make a device in /dev", erofs, `os.mknod('/dev/mem', stat.S_IFCHR | 0o666, os.makedev(1, 1))`),
	both("have device nodes honoured where files can be made", "NONE", `found = []
for line in read('/proc/self/mountinfo').decode().splitlines():
    f = line.split()
    if f[4] != '/dev' and not f[4].startswith(('/dev/pts', '/proc/')) and 'nodev' not in f[5].split(','): found.append(f[4])
result = ', '.join(found) or 'NONE'`),
	both("have set-user-id programs honoured where files can be made", "NONE", `found = []
for line in read('/proc/self/mountinfo').decode().splitlines():
    f = line.split()
    if not f[4].startswith(('/dev', '/proc', '/sys')) and 'nosuid' not in f[5].split(',') and b'NoNewPrivs:\t1' not in read('/proc/self/status'): found.append(f[4])
result = ', '.join(found) or 'NONE'`),
	both("create a file in /dev", erofs, `open('/dev/new', 'w')`),
	both("make a directory in /dev", erofs, `os.mkdir('/dev/new')`),
	both("make a link in /dev", erofs, `os.symlink('/workspace', '/dev/new')`),
	both("remove a device that all sandboxes use", erofs, `result = each(os.unlink, ['/dev/null', '/dev/zero', '/dev/random', '/dev/fd'])`),
	both("rename a device that all sandboxes use", erofs, `os.rename('/dev/null', '/dev/old')`),
	both("change the mode of a device that all sandboxes use", erofs, `os.chmod('/dev/null', 0o600)`),
	both("change the owner of a device that all sandboxes use", erofs, `os.chown('/dev/null', 0, 0)`),
	both("change the times of a device that all sandboxes use", erofs, `os.utime('/dev/null', (0, 0))`),
	both("set an attribute of a device that all sandboxes use", erofs, `os.setxattr('/dev/null', 'user.a', b'x')`),
	both("add entropy to the host's pool", eperm, `f = os.open('/dev/urandom', os.O_RDWR)
result = each(lambda c: call('ioctl', f, c, ctypes.create_string_buffer(struct.pack('iiQ', 64, 8, 0))), [0x40085203, 0x5204, 0x5206, 0x5207])`),
}
