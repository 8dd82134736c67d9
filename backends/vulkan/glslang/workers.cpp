// Pipelines made from GLSL by threads that never hold the interpreter's lock, so that the thread that writes further
// shaders is not stopped. Needs no header of Vulkan's: functions come as pointers, and the pipeline's description comes
// from Python, where only its module is missing. build.py puts this file after modules.cpp.
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <new>
#ifdef _WIN32
#include <thread>
#else
#include <pthread.h>
#include <signal.h>
#endif

#ifdef _WIN32
#define CALLED_BY_VULKAN __stdcall
#else
#define CALLED_BY_VULKAN
#endif

typedef int32_t (CALLED_BY_VULKAN *create_module_call)(void *, const void *, const void *, uint64_t *);
typedef void (CALLED_BY_VULKAN *destroy_module_call)(void *, uint64_t, const void *);
typedef int32_t (CALLED_BY_VULKAN *create_pipelines_call)(
    void *, uint64_t, uint32_t, const void *, const void *, uint64_t *);

// VkShaderModuleCreateInfo, and the value of its first member.
struct module_info {
    uint32_t type;
    const void *next;
    uint32_t flags;
    size_t nbytes;
    const uint32_t *words;
};
static const uint32_t type_of_module_info = 16;

// Must have the members that build.py declares.
typedef struct {
    void *device;
    uint64_t cache;
    void *create_module;
    void *destroy_module;
    void *create_pipelines;
} pipeline_driver;

typedef struct {
    int made;
    uint64_t pipeline;
    const uint32_t *words;
    size_t count;
    double compiler_seconds;
    double driver_seconds;
} made_pipeline;

struct job {
    pipeline_driver driver;
    std::string source;
    int changes;
    module_words words;
    void *info;
    size_t module_offset;
    bool done = false;
    made_pipeline result = {};
};

static double seconds_since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The module of a job's GLSL; false if there is none. Python asks again, and then finds out why.
static bool compile_source(job &job) {
    uint32_t *words = nullptr;
    size_t count = 0;
    char *message = nullptr;
    const bool compiled = compile_shader(job.source.c_str(), &words, &count, &message) != 0;
    const std::unique_ptr<uint32_t, void (*)(void *)> freed(words, std::free);
    std::free(message);
    if (!compiled) return false;
    job.words.assign(words, words + count);
    if (!is_module(job.words)) return false;
    if (job.changes & brain_floats) job.words = with_brain_floats(job.words);
    if (job.changes & exact_floats) job.words = with_exact_floats(job.words);
    if (job.changes & ordered_floats) job.words = with_ordered_floats(job.words);
    return true;
}

static bool create_pipeline(job &job) {
    const pipeline_driver &driver = job.driver;
    const module_info info = {type_of_module_info, nullptr, 0, job.words.size() * 4, job.words.data()};
    uint64_t module = 0;
    if (reinterpret_cast<create_module_call>(driver.create_module)(driver.device, &info, nullptr, &module) < 0) {
        return false;
    }
    std::memcpy(static_cast<char *>(job.info) + job.module_offset, &module, sizeof(module));
    const int32_t result = reinterpret_cast<create_pipelines_call>(driver.create_pipelines)(
        driver.device, driver.cache, 1, job.info, nullptr, &job.result.pipeline);
    reinterpret_cast<destroy_module_call>(driver.destroy_module)(driver.device, module, nullptr);
    return result >= 0;
}

static void work_on(job &job) {
    try {
        const auto start = std::chrono::steady_clock::now();
        if (job.words.empty() && !compile_source(job)) return;
        job.result.compiler_seconds = seconds_since(start);
        const auto compiled = std::chrono::steady_clock::now();
        const bool made = create_pipeline(job);
        job.result.driver_seconds = seconds_since(compiled);
        job.result.words = job.words.data();
        job.result.count = job.words.size();
        job.result.made = made;
    } catch (...) {
        job.result.made = 0;
    }
}

class workers {
  public:
    explicit workers(size_t most) : most(most) {}

    job *begin(std::unique_ptr<job> wanted) {
        job *begun = wanted.get();
        const std::lock_guard<std::mutex> lock(mutex);
        jobs.push_back(std::move(wanted));
        waiting.push_back(begun);
        if (idle < waiting.size() && threads.size() < most && !start() && threads.empty()) {
            jobs.pop_back();
            waiting.pop_back();
            return nullptr;
        }
        changed.notify_one();
        return begun;
    }

    made_pipeline wait(job *begun) {
        std::unique_lock<std::mutex> lock(mutex);
        finished.wait(lock, [begun] { return begun->done; });
        return begun->result;
    }

    // What is not yet begun never is; returns when the rest is there.
    void end() {
        {
            const std::lock_guard<std::mutex> lock(mutex);
            ending = true;
            for (job *each : waiting) each->done = true;
            waiting.clear();
            changed.notify_all();
        }
        for (auto &thread : threads) join(thread);
        threads.clear();
    }

  private:
    void run() {
        std::unique_lock<std::mutex> lock(mutex);
        while (true) {
            ++idle;
            changed.wait(lock, [this] { return ending || !waiting.empty(); });
            --idle;
            if (waiting.empty()) return;
            job *next = waiting.front();
            waiting.pop_front();
            lock.unlock();
            work_on(*next);
            lock.lock();
            next->done = true;
            finished.notify_all();
        }
    }

#ifdef _WIN32
    typedef std::thread thread_handle;

    bool start() {
        try {
            threads.emplace_back([this] { run(); });
            return true;
        } catch (...) {
            return false;
        }
    }

    static void join(thread_handle &thread) {
        thread.join();
    }
#else
    typedef pthread_t thread_handle;

    static void *entry(void *self) {
        static_cast<workers *>(self)->run();
        return nullptr;
    }

    // With a stack as large as threads have by default on Linux: glslang and drivers recurse, and some systems give but 128 KiB.
    // Signals are left to the interpreter's threads, one of which may wait for an interrupt.
    bool start() {
        pthread_attr_t attributes;
        pthread_t thread;
        sigset_t all, before;
        if (pthread_attr_init(&attributes) != 0) return false;
        pthread_attr_setstacksize(&attributes, size_t(8) << 20);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        const bool started = pthread_create(&thread, &attributes, entry, this) == 0;
        pthread_sigmask(SIG_SETMASK, &before, nullptr);
        pthread_attr_destroy(&attributes);
        if (started) threads.push_back(thread);
        return started;
    }

    static void join(thread_handle &thread) {
        pthread_join(thread, nullptr);
    }
#endif

    const size_t most;
    size_t idle = 0;
    bool ending = false;
    std::mutex mutex;
    std::condition_variable changed, finished;
    std::deque<job *> waiting;
    std::deque<std::unique_ptr<job>> jobs;
    std::deque<thread_handle> threads;
};

// Threads for begin_pipeline, at most so many; none is started before it is needed. NULL if there is no memory.
static void *new_workers(size_t most) {
    return new (std::nothrow) workers(most);
}

// Has a pipeline made soon, of GLSL, or of a module of `nbytes` bytes. `info` is a VkComputePipelineCreateInfo, which
// must live until end_workers, with the place of its module at an offset. NULL if no thread can be started.
static void *begin_pipeline(void *threads, const pipeline_driver *driver, const char *source, int changes,
                            const void *module, size_t nbytes, void *info, size_t module_offset) {
    try {
        std::unique_ptr<job> wanted(new job());
        wanted->driver = *driver;
        wanted->source = source;
        wanted->changes = changes;
        wanted->words.resize(nbytes / 4);
        if (nbytes != 0) std::memcpy(wanted->words.data(), module, nbytes / 4 * 4);
        wanted->info = info;
        wanted->module_offset = module_offset;
        return static_cast<workers *>(threads)->begin(std::move(wanted));
    } catch (...) {
        return nullptr;
    }
}

// Waits until a pipeline is made, or cannot be. The words live until drop_workers.
static made_pipeline wait_for_pipeline(void *threads, void *begun) {
    return static_cast<workers *>(threads)->wait(static_cast<job *>(begun));
}

static void end_workers(void *threads) {
    static_cast<workers *>(threads)->end();
}

// After end_workers.
static void drop_workers(void *threads) {
    delete static_cast<workers *>(threads);
}
