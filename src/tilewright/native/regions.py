"""Regions: the code that runs `fn(data, chunk)` for every chunk of a kernel, as LLVM IR.

Each text defines `void @parallel(ptr fn, ptr data, i64 chunks, ptr context)` (the first, which the others build on,
`@serial`); how they wait is the machine's own. They hold no address of any process, so that their object code can be
kept. Whoever began a region and waits for its last chunks looks for signals meanwhile, the way its context says. A
region inside another, and one that finds the pool busy, runs serially: nobody ever waits for a worker that has not
started, so a forked child, where there is none, drains all its chunks alone.
"""

from tilewright.native.context import Context
from tilewright.native.machines import here

SPINS = 1 << 14  # pauses before a worker sleeps: 0.2 to 0.7 ms

SERIAL = """
define void @serial(ptr %fn, ptr %data, i64 %chunks, ptr %context) nounwind {
entry:
  %some = icmp sgt i64 %chunks, 0
  br i1 %some, label %loop, label %done
loop:
  %chunk = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void %fn(ptr %data, i64 %chunk)
  %next = add i64 %chunk, 1
  %more = icmp slt i64 %next, %chunks
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""

WAITING = found.waiting if (found := here()) else ""
"""How code waits on this machine."""

_WAIT = f"""{WAITING}
declare i32 @sched_yield()

define internal void @wait(ptr %done, i64 %chunks, ptr %context) nounwind {{  ; until so many chunks are done
entry:
  br label %check
check:
  %spun = phi i64 [ 0, %entry ], [ %spins, %pause ], [ 0, %yield ]
  %ran = load atomic i64, ptr %done acquire, align 8
  %all = icmp sge i64 %ran, %chunks
  br i1 %all, label %end, label %pause
pause:
  call void @relax()
  %spins = add i64 %spun, 1
  %long = icmp sgt i64 %spins, 1000
  br i1 %long, label %tired, label %check
tired:
  %none = icmp eq ptr %context, null
  br i1 %none, label %yield, label %ask
ask:
  %look.at = getelementptr i64, ptr %context, i64 {Context.LOOK}
  %look = load ptr, ptr %look.at
  %nobody = icmp eq ptr %look, null
  br i1 %nobody, label %yield, label %look.now
look.now:
  call void %look(ptr %context)
  br label %yield
yield:
  %yielded = call i32 @sched_yield()
  br label %check
end:
  ret void
}}
"""

TEAM = f"""{_WAIT}
@threads = dso_local global i64 1
declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_in_parallel()
declare i32 @omp_get_thread_num()
declare i64 @pthread_self()

; region: fn, data, chunks, members, the thread that began it, context; then, each in a cache line of its own, how many
; chunks are done, and for each member the next chunk of its share. A member runs its own share first, which is the same
; part of the data whenever a kernel is called again, and may be in its caches; then what others have left of theirs.
define internal void @member(ptr %region) nounwind {{
entry:
  %fn = load ptr, ptr %region
  %data.at = getelementptr i8, ptr %region, i64 8
  %data = load ptr, ptr %data.at
  %chunks.at = getelementptr i8, ptr %region, i64 16
  %chunks = load i64, ptr %chunks.at
  %members.at = getelementptr i8, ptr %region, i64 24
  %members = load i64, ptr %members.at
  %done.at = getelementptr i8, ptr %region, i64 64
  %shares = getelementptr i8, ptr %region, i64 128
  %number = call i32 @omp_get_thread_num()
  %own = zext i32 %number to i64
  br label %share
share:
  %ran = phi i64 [ 0, %entry ], [ %so.far, %next.share ]
  %tried = phi i64 [ 0, %entry ], [ %trying, %next.share ]
  %sum = add i64 %own, %tried
  %whose = urem i64 %sum, %members
  %line = shl i64 %whose, 6
  %next.at = getelementptr i8, ptr %shares, i64 %line
  %after = add i64 %whose, 1
  %scaled = mul i64 %after, %chunks
  %end = udiv i64 %scaled, %members
  br label %look
look:
  %so.far = phi i64 [ %ran, %share ], [ %one.more, %run ]
  %seen = load atomic i64, ptr %next.at monotonic, align 8
  %some = icmp slt i64 %seen, %end
  br i1 %some, label %claim, label %next.share
claim:
  %chunk = atomicrmw add ptr %next.at, i64 1 monotonic
  %mine = icmp slt i64 %chunk, %end
  br i1 %mine, label %run, label %next.share
run:
  call void %fn(ptr %data, i64 %chunk)
  %one.more = add i64 %so.far, 1
  br label %look
next.share:
  %trying = add i64 %tried, 1
  %more = icmp slt i64 %trying, %members
  br i1 %more, label %share, label %tell
tell:
  %before = atomicrmw add ptr %done.at, i64 %so.far release
  %self = call i64 @pthread_self()
  %owner.at = getelementptr i8, ptr %region, i64 32
  %owner = load i64, ptr %owner.at
  %is.owner = icmp eq i64 %self, %owner
  br i1 %is.owner, label %wait, label %end.here
wait:  ; whoever began the region waits here, where it can look for signals, and not in OpenMP, where it cannot
  %context.at = getelementptr i8, ptr %region, i64 40
  %context = load ptr, ptr %context.at
  call void @wait(ptr %done.at, i64 %chunks, ptr %context)
  ret void
end.here:
  ret void
}}

define void @parallel(ptr %fn, ptr %data, i64 %chunks, ptr %context) nounwind {{
entry:
  %threads = load atomic i64, ptr @threads monotonic, align 8
  %fewer = icmp slt i64 %chunks, %threads
  %size = select i1 %fewer, i64 %chunks, i64 %threads
  %alone = icmp sle i64 %size, 1
  br i1 %alone, label %serial, label %nested
nested:
  %level = call i32 @omp_in_parallel()
  %inside = icmp ne i32 %level, 0
  br i1 %inside, label %serial, label %team
serial:
  call void @serial(ptr %fn, ptr %data, i64 %chunks, ptr %context)
  ret void
team:
  %lines = add i64 %size, 2
  %bytes = shl i64 %lines, 6
  %region = alloca i8, i64 %bytes, align 64
  store ptr %fn, ptr %region
  %data.at = getelementptr i8, ptr %region, i64 8
  store ptr %data, ptr %data.at
  %chunks.at = getelementptr i8, ptr %region, i64 16
  store i64 %chunks, ptr %chunks.at
  %members.at = getelementptr i8, ptr %region, i64 24
  store i64 %size, ptr %members.at
  %owner.at = getelementptr i8, ptr %region, i64 32
  %self = call i64 @pthread_self()
  store i64 %self, ptr %owner.at
  %context.at = getelementptr i8, ptr %region, i64 40
  store ptr %context, ptr %context.at
  %done.at = getelementptr i8, ptr %region, i64 64
  store i64 0, ptr %done.at
  %shares = getelementptr i8, ptr %region, i64 128
  br label %share
share:
  %whose = phi i64 [ 0, %team ], [ %following, %share ]
  %line = shl i64 %whose, 6
  %next.at = getelementptr i8, ptr %shares, i64 %line
  %scaled = mul i64 %whose, %chunks
  %first = udiv i64 %scaled, %size
  store i64 %first, ptr %next.at
  %following = add i64 %whose, 1
  %more = icmp slt i64 %following, %size
  br i1 %more, label %share, label %begin
begin:
  %members = trunc i64 %size to i32
  call void @GOMP_parallel(ptr @member, ptr %region, i32 %members, i32 0)
  ret void
}}
"""

# State is one word: the number of the region in the upper half, its chunks that nobody has claimed in the lower. With
# none left a worker leaves the region's other words alone, so they may be rewritten; one that read them too early has
# an old state in hand and fails to claim.
POOL = f"""{_WAIT}
@threads = dso_local global i64 1
@state = internal global i64 0, align 64
@fn = internal global ptr null, align 8
@data = internal global ptr null, align 8
@chunks = internal global i64 0, align 8
@done = internal global i64 0, align 64
@busy = internal global i64 0, align 64
@sleepers = internal global i64 0, align 8
@started = internal global i64 0, align 8
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_detach(i64)

define internal void @work() nounwind {{  ; run chunks until none is left to claim
entry:
  br label %claim
claim:
  %seen = load atomic i64, ptr @state acquire, align 8
  %left = and i64 %seen, 4294967295
  %none = icmp eq i64 %left, 0
  br i1 %none, label %done, label %try
try:
  %fn = load atomic ptr, ptr @fn acquire, align 8
  %data = load atomic ptr, ptr @data acquire, align 8
  %chunks = load atomic i64, ptr @chunks acquire, align 8
  %less = sub i64 %seen, 1
  %swap = cmpxchg ptr @state, i64 %seen, i64 %less acq_rel monotonic
  %mine = extractvalue {{ i64, i1 }} %swap, 1
  br i1 %mine, label %run, label %claim
run:
  %chunk = sub i64 %chunks, %left
  call void %fn(ptr %data, i64 %chunk)
  %before = atomicrmw add ptr @done, i64 1 release
  br label %claim
done:
  ret void
}}

define internal ptr @worker(ptr %unused) nounwind {{
entry:
  br label %busy
busy:
  call void @work()
  br label %spin
spin:
  %spun = phi i64 [ 0, %busy ], [ %spins, %again ]
  %seen = load atomic i64, ptr @state monotonic, align 8
  %left = and i64 %seen, 4294967295
  %some = icmp ne i64 %left, 0
  br i1 %some, label %busy, label %again
again:
  call void @relax()
  %spins = add i64 %spun, 1
  %tired = icmp sgt i64 %spins, {SPINS}
  br i1 %tired, label %sleep, label %spin
sleep:
  %up = atomicrmw add ptr @sleepers, i64 1 seq_cst
  %last = load atomic i64, ptr @state seq_cst, align 8
  %rest = and i64 %last, 4294967295
  %idle = icmp eq i64 %rest, 0
  br i1 %idle, label %wait, label %wake
wait:  ; unless another region has begun
  %high = lshr i64 %last, 32
  %epoch = trunc i64 %high to i32
  %futex = getelementptr i8, ptr @state, i64 4
  call void @sleep.while(ptr %futex, i32 %epoch)
  br label %wake
wake:
  %down = atomicrmw sub ptr @sleepers, i64 1 seq_cst
  br label %busy
}}

define internal void @start(i64 %threads) nounwind {{
entry:
  %thread = alloca i64
  store i64 1, ptr @started
  br label %next
next:
  %number = phi i64 [ 1, %entry ], [ %following, %detach ]
  %more = icmp slt i64 %number, %threads
  br i1 %more, label %create, label %done
create:
  %failed = call i32 @pthread_create(ptr %thread, ptr null, ptr @worker, ptr null)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %detach, label %done
detach:
  %id = load i64, ptr %thread
  %detached = call i32 @pthread_detach(i64 %id)
  %following = add i64 %number, 1
  br label %next
done:
  ret void
}}

define void @parallel(ptr %fn, ptr %data, i64 %chunks, ptr %context) nounwind {{
entry:
  %one = icmp sle i64 %chunks, 1
  %huge = icmp sgt i64 %chunks, 4294967295
  %unfit = or i1 %one, %huge
  br i1 %unfit, label %serial, label %try
try:
  %was = atomicrmw xchg ptr @busy, i64 1 acquire
  %taken = icmp ne i64 %was, 0
  br i1 %taken, label %serial, label %own
serial:
  call void @serial(ptr %fn, ptr %data, i64 %chunks, ptr %context)
  ret void
own:
  %started = load i64, ptr @started
  %ready = icmp ne i64 %started, 0
  br i1 %ready, label %publish, label %first
first:
  %threads = load i64, ptr @threads
  call void @start(i64 %threads)
  br label %publish
publish:
  store atomic i64 0, ptr @done monotonic, align 8
  store atomic ptr %fn, ptr @fn release, align 8
  store atomic ptr %data, ptr @data release, align 8
  store atomic i64 %chunks, ptr @chunks release, align 8
  %old = load atomic i64, ptr @state monotonic, align 8
  %high = lshr i64 %old, 32
  %next = add i64 %high, 1
  %epoch = shl i64 %next, 32
  %open = or i64 %epoch, %chunks
  store atomic i64 %open, ptr @state seq_cst, align 8
  %asleep = load atomic i64, ptr @sleepers seq_cst, align 8
  %quiet = icmp eq i64 %asleep, 0
  br i1 %quiet, label %drain, label %wake
wake:
  %futex = getelementptr i8, ptr @state, i64 4
  call void @wake.all(ptr %futex)
  br label %drain
drain:
  call void @work()
  call void @wait(ptr @done, i64 %chunks, ptr %context)
  store atomic i64 0, ptr @busy release, align 8
  ret void
}}
"""
