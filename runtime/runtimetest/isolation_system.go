// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package runtimetest

// owned is a system file that is the user's by owner and mode: what keeps it
// from writing is the read-only view and nothing else.
const owned = `p = '/usr/local/owned'
assert os.stat(p).st_uid == 1000 and read(p) == b'original\n'
`

// systemFiles are ways for the user to change the system that root installed,
// and for both to change the image that all sandboxes share.
var systemFiles = []attempt{
	asUser("write a system file that one owns", erofs, owned+`result = each(lambda f: os.open(p, f), [os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND, os.O_WRONLY | os.O_TRUNC])`),
	asUser("change a system file that one owns in any other way", erofs, owned+`def f(how):
    if how == 'truncate': os.truncate(p, 0)
    if how == 'chmod': os.chmod(p, 0o777)
    if how == 'chown': os.chown(p, 1000, 1000)
    if how == 'utime': os.utime(p)
    if how == 'setxattr': os.setxattr(p, 'user.a', b'x')
    if how == 'unlink': os.unlink(p)
    if how == 'rename': os.rename(p, p + '2')
    if how == 'link': os.link(p, '/usr/local/owned2')
    if how == 'create': os.open('/usr/local/new', os.O_CREAT | os.O_WRONLY)
    if how == 'mkdir': os.mkdir('/usr/local/new')
    if how == 'symlink': os.symlink(p, '/usr/local/new')
    if how == 'mkfifo': os.mkfifo('/usr/local/new')
    if how == 'bind':
        s = socket.socket(socket.AF_UNIX); s.bind('/usr/local/new')
result = each(f, ['truncate', 'chmod', 'chown', 'utime', 'setxattr', 'unlink', 'rename', 'link', 'create', 'mkdir', 'symlink', 'mkfifo', 'bind'])`),
	asUser("open a system file again for writing through its descriptor", erofs, owned+`result = each(lambda f: os.open('/proc/self/fd/%d' % os.open(p, f), os.O_RDWR), [os.O_PATH, os.O_RDONLY])`),
	asUser("open a system file again through another's descriptors", erofs, owned+`f = os.open(p, os.O_PATH)
pid = os.fork()
if pid == 0:
    signal.alarm(5); signal.pause()
try: os.open('/proc/%d/fd/%d' % (pid, f), os.O_RDWR)
finally: os.kill(pid, signal.SIGKILL)`),
	asUser("write a system file through the root that /proc shows", erofs, owned+`result = each(lambda r: os.open(r + p, os.O_WRONLY), ['/proc/self/root', '/proc/thread-self/root', '/proc/%d/root' % os.getppid()])`),
	asUser("write a system file through a link of one's own", erofs, owned+`for n in ('/workspace/way', '/tmp/way'):
    if os.path.lexists(n): os.unlink(n)
    os.symlink(p, n)
result = each(lambda n: os.open(n, os.O_WRONLY), ['/workspace/way', '/tmp/way'])`),
	asUser("carry a system file to a writable directory", exdev, owned+`result = each(lambda f: f(p, '/workspace/carried'), [os.link, os.rename])`),
	asUser("carry a file between the writable directories by link", exdev, `open('/workspace/mine', 'w').close()
os.link('/workspace/mine', '/tmp/mine')`),
	asUser("exchange a system file with one's own", exdev, owned+`open('/workspace/mine', 'w').close()
def f(flag):
    if libc.renameat2(AT, p.encode(), AT, b'/workspace/mine', flag): raise OSError(ctypes.get_errno(), '')
result = each(f, [0, 1, 2])`),
	asUser("map a system file for writing", eacces, owned+`f = os.open(p, os.O_RDONLY)
mmap.mmap(f, 4, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)`),
	asUser("make a shared mapping of a system file writable", eacces, owned+`f = os.open(p, os.O_RDONLY)
libc.mmap.restype = ctypes.c_void_p
at = libc.mmap(None, ctypes.c_size_t(4096), 1, 1, f, ctypes.c_long(0))
if libc.mprotect(ctypes.c_void_p(at), ctypes.c_size_t(4096), 3): raise OSError(ctypes.get_errno(), '')`),
	asUser("write a shared mapping of a system file through /proc/self/mem", "REFUSED EIO", owned+`f = os.open(p, os.O_RDONLY)
libc.mmap.restype = ctypes.c_void_p
at = libc.mmap(None, ctypes.c_size_t(4096), 1, 1, f, ctypes.c_long(0))
os.pwrite(os.open('/proc/self/mem', os.O_RDWR), b'changed', at)`),
	asUser("write a private mapping of a system file through /proc/self/mem", "UNCHANGED", owned+`f = os.open(p, os.O_RDONLY)
libc.mmap.restype = ctypes.c_void_p
at = libc.mmap(None, ctypes.c_size_t(4096), 1, 2, f, ctypes.c_long(0))
assert os.pwrite(os.open('/proc/self/mem', os.O_RDWR), b'changed', at) == 7
result = 'UNCHANGED' if read(p) == b'original\n' else 'CHANGED'`),
	asUser("write a system file's page that a pipe holds", "UNCHANGED", owned+`r, w = os.pipe()
for _ in range(16): os.write(w, b'x' * 4096)
os.read(r, 65536)
assert os.splice(os.open(p, os.O_RDONLY), w, 1, offset_src=0) == 1
os.write(w, b'changed')
result = 'UNCHANGED' if read(p) == b'original\n' else 'CHANGED'`),
	asUser("read what only root may read", eacces, `result = each(lambda p: os.open(p, os.O_RDONLY), there('/', 'root/secret etc/shadow'))`),
	asUser("enter root's directories", eacces, `os.listdir('/root')`),
	asUser("write root's files in the workspace", eacces, `result = each(lambda f: os.open('/workspace/theirs/' + f, os.O_WRONLY | os.O_CREAT), ['file', 'new'])`),
	asUser("change root's files in the workspace", eperm, `result = each(lambda f: f(), [lambda: os.chmod('/workspace/theirs/file', 0o666), lambda: os.chmod('/workspace/theirs', 0o777),
    lambda: os.chown('/workspace/theirs', 1000, 1000), lambda: os.utime('/workspace/theirs/file', (0, 0))])`),
	asUser("give files away", eperm, `open('/workspace/gift', 'w').close()
result = each(lambda u: os.chown('/workspace/gift', *u), [(0, -1), (1001, -1), (-1, 0), (-1, 1001), (65534, 65534)])`),
	asRoot("give files to users that the sandbox has not", einval, `open('/workspace/gift', 'w').close()
result = each(lambda u: os.chown('/workspace/gift', *u), [(65536, -1), (-1, 65536), (100000, 100000), (1 << 20, 1 << 20), (0xfffffffe, 0xfffffffe)])`),
	asRoot("make a set-capability program", eperm, `open('/workspace/program', 'w').close()
result = each(lambda v: os.setxattr('/workspace/program', 'security.capability', v),
    [struct.pack('<IIIII', 0x02000001, 0xffffffff, 0, 0xffffffff, 0), struct.pack('<IIIIII', 0x03000001, 0xffffffff, 0, 0xffffffff, 0, 0)])`),
}
