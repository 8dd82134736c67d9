// What Python sees of glslang and SPIRV-Tools: one call that compiles, one that disassembles.
// build.py compiles this file, and those that follow it, into the extension lavax.backends.vulkan.glslang._glslang.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include <glslang/Include/glslang_c_interface.h>
#include <glslang/Public/resource_limits_c.h>
#include <spirv-tools/libspirv.h>
#if __has_include(<glslang/build_info.h>)
#include <glslang/build_info.h>
#endif

#ifdef GLSLANG_VERSION_MAJOR
static const int version_major = GLSLANG_VERSION_MAJOR;
static const int version_minor = GLSLANG_VERSION_MINOR;
static const int version_patch = GLSLANG_VERSION_PATCH;
#else
static const int version_major = 0;
static const int version_minor = 0;
static const int version_patch = 0;
#endif

static const int messages = GLSLANG_MSG_SPV_RULES_BIT | GLSLANG_MSG_VULKAN_RULES_BIT;

static char *copy_text(const std::string &text) {
    char *copy = static_cast<char *>(std::malloc(text.size() + 1));
    if (copy != nullptr) std::memcpy(copy, text.c_str(), text.size() + 1);
    return copy;
}

static std::string text_or_empty(const char *text) {
    return text == nullptr ? std::string() : std::string(text);
}

static glslang_input_t compute_shader_input(const char *source) {
    glslang_input_t input = {};
    input.language = GLSLANG_SOURCE_GLSL;
    input.stage = GLSLANG_STAGE_COMPUTE;
    input.client = GLSLANG_CLIENT_VULKAN;
    input.client_version = GLSLANG_TARGET_VULKAN_1_3;
    input.target_language = GLSLANG_TARGET_SPV;
    input.target_language_version = GLSLANG_TARGET_SPV_1_6;
    input.code = source;
    input.default_version = 460;
    input.default_profile = GLSLANG_NO_PROFILE;
    input.messages = static_cast<glslang_messages_t>(messages);
    input.resource = glslang_default_resource();
    return input;
}

static int start_glslang() {
    return glslang_initialize_process();
}

static int compile_or_throw(const char *source, uint32_t **words, size_t *count, char **message) {
    const glslang_input_t input = compute_shader_input(source);
    glslang_shader_t *shader = glslang_shader_create(&input);
    if (shader == nullptr) {
        *message = copy_text("glslang was not initialised");
        return 0;
    }
    glslang_program_t *program = nullptr;
    int done = 0;
    if (!glslang_shader_preprocess(shader, &input) || !glslang_shader_parse(shader, &input)) {
        *message = copy_text(text_or_empty(glslang_shader_get_info_log(shader)));
    } else {
        program = glslang_program_create();
        glslang_program_add_shader(program, shader);
        if (!glslang_program_link(program, messages)) {
            *message = copy_text(text_or_empty(glslang_program_get_info_log(program)));
        } else {
            // By default glslang validates what it made, which takes longer than making it; tests do that.
            glslang_spv_options_t options = {};
            options.disable_optimizer = true;
            glslang_program_SPIRV_generate_with_options(program, GLSLANG_STAGE_COMPUTE, &options);
            *count = glslang_program_SPIRV_get_size(program);
            if (*count != 0) *words = static_cast<uint32_t *>(std::malloc(*count * sizeof(uint32_t)));
            if (*words != nullptr) {
                glslang_program_SPIRV_get(program, *words);
                done = 1;
            } else {
                const std::string said = text_or_empty(glslang_program_SPIRV_get_messages(program));
                *message = copy_text(*count == 0 ? "glslang made no SPIR-V. " + said : "out of memory");
            }
        }
        glslang_program_delete(program);
    }
    glslang_shader_delete(shader);
    return done;
}

// Compiles one compute shader. Returns 1 and the words, at least one, or 0 and the compiler's message; the caller
// releases what it got with release(). No exception of C++ passes into C.
static int compile_shader(const char *source, uint32_t **words, size_t *count, char **message) {
    try {
        return compile_or_throw(source, words, count, message);
    } catch (const std::exception &error) {
        *message = copy_text(text_or_empty(error.what()));
    } catch (...) {
        *message = copy_text("glslang threw an exception");
    }
    return 0;
}

// The text of a SPIR-V module. Returns 1 and the text, or 0 and a message in its place.
static int disassemble_words(const uint32_t *words, size_t count, char **text) {
    spv_context context = spvContextCreate(SPV_ENV_UNIVERSAL_1_6);
    spv_text result = nullptr;
    spv_diagnostic diagnostic = nullptr;
    const uint32_t options = SPV_BINARY_TO_TEXT_OPTION_INDENT | SPV_BINARY_TO_TEXT_OPTION_FRIENDLY_NAMES |
                             SPV_BINARY_TO_TEXT_OPTION_NO_HEADER;
    const int done = spvBinaryToText(context, words, count, options, &result, &diagnostic) == SPV_SUCCESS;
    if (done) *text = copy_text(std::string(result->str, result->length));
    else *text = copy_text(text_or_empty(diagnostic == nullptr ? nullptr : diagnostic->error));
    spvTextDestroy(result);
    spvDiagnosticDestroy(diagnostic);
    spvContextDestroy(context);
    return done;
}

static void release(void *memory) {
    std::free(memory);
}
