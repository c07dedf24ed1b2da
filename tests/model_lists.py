"""Lists of models as servers return them, including models that cannot hold a conversation."""

# From GET https://api.openai.com/v1/models, in the order of our providers.
OPENAI = (
    "babbage-002", "chatgpt-4o-latest", "chatgpt-image-latest", "codex-mini-latest", "computer-use-preview",
    "dall-e-2", "dall-e-3", "davinci-002", "gpt-3.5-turbo", "gpt-3.5-turbo-0125", "gpt-3.5-turbo-instruct",
    "gpt-3.5-turbo-instruct-0914", "gpt-4", "gpt-4-0613", "gpt-4-turbo", "gpt-4-turbo-preview", "gpt-4.1",
    "gpt-4.1-2025-04-14", "gpt-4.1-mini", "gpt-4.1-nano", "gpt-4o", "gpt-4o-2024-08-06", "gpt-4o-audio-preview",
    "gpt-4o-mini", "gpt-4o-mini-2024-07-18", "gpt-4o-mini-audio-preview", "gpt-4o-mini-realtime-preview",
    "gpt-4o-mini-search-preview", "gpt-4o-mini-transcribe", "gpt-4o-mini-tts", "gpt-4o-realtime-preview",
    "gpt-4o-search-preview", "gpt-4o-transcribe-diarize", "gpt-5", "gpt-5-chat-latest", "gpt-5-codex", "gpt-5-mini",
    "gpt-5-mini-2025-08-07", "gpt-5-nano", "gpt-5-pro", "gpt-5-search-api", "gpt-5.1", "gpt-audio", "gpt-audio-mini",
    "gpt-image-1", "gpt-image-1-mini", "gpt-realtime", "gpt-realtime-mini", "o1", "o1-mini", "o1-preview", "o1-pro",
    "o3", "o3-deep-research", "o3-mini", "o4-mini", "o4-mini-deep-research", "omni-moderation-latest", "sora-2",
    "text-embedding-3-large", "text-embedding-3-small", "text-embedding-ada-002", "tts-1", "tts-1-hd", "whisper-1",
)  # fmt: skip
OPENAI_CHAT_MODELS = (
    "chatgpt-4o-latest", "codex-mini-latest", "gpt-3.5-turbo", "gpt-3.5-turbo-0125", "gpt-4", "gpt-4-0613",
    "gpt-4-turbo", "gpt-4-turbo-preview", "gpt-4.1", "gpt-4.1-2025-04-14", "gpt-4.1-mini", "gpt-4.1-nano", "gpt-4o",
    "gpt-4o-2024-08-06", "gpt-4o-mini", "gpt-4o-mini-2024-07-18", "gpt-5", "gpt-5-chat-latest", "gpt-5-codex",
    "gpt-5-mini", "gpt-5-mini-2025-08-07", "gpt-5-nano", "gpt-5-pro", "gpt-5.1", "o1", "o1-pro", "o3", "o3-mini",
    "o4-mini",
)  # fmt: skip

# Model names in Home Assistant 2026.11 and in the SDKs of the same time.
OPENAI_NEWER = (
    "gpt-5-mini", "gpt-5.4", "gpt-5.4-mini", "gpt-5.4-nano", "gpt-5.6", "gpt-5.6-luna", "gpt-5.6-sol", "gpt-5.6-terra",
    "gpt-6-astra", "gpt-6-luna", "gpt-6-sol", "gpt-6.1-terra", "gpt-7-mini-preview", "gpt-image-2.5-flare",
    "gpt-live-1", "gpt-live-transcribe", "gpt-realtime-whisper", "gpt-transcribe",
)  # fmt: skip

ANTHROPIC = (
    "claude-3-5-haiku-20241022", "claude-3-7-sonnet-20250219", "claude-3-haiku-20240307", "claude-haiku-4-5-20251001",
    "claude-opus-4-1-20250805", "claude-opus-4-6", "claude-sonnet-4-20250514", "claude-sonnet-4-5-20250929",
)  # fmt: skip

# From GET /v1beta/models, only models that support generateContent.
GEMINI = (
    "deep-research-pro-preview-12-2025", "gemini-2.0-flash", "gemini-2.0-flash-001", "gemini-2.0-flash-exp",
    "gemini-2.0-flash-exp-image-generation", "gemini-2.0-flash-lite", "gemini-2.0-flash-lite-001", "gemini-2.5-flash",
    "gemini-2.5-flash-image", "gemini-2.5-flash-lite", "gemini-2.5-flash-lite-preview-09-2025",
    "gemini-2.5-flash-preview-tts", "gemini-2.5-pro", "gemini-3-flash-preview", "gemini-3.1-flash-lite",
    "gemini-3.8-live", "gemini-flash-latest", "gemini-flash-lite-latest", "gemini-pro-latest",
    "gemini-robotics-er-1.6", "gemma-3-27b-it", "learnlm-2.0-flash-experimental", "nano-banana-pro-preview",
)  # fmt: skip
GEMINI_OTHER = ("aqa", "gemini-embedding-001", "imagen-4.0-generate-001", "veo-3.0-generate-001")

OLLAMA = ("all-minilm:latest", "bge-m3:latest", "llama3.2-vision:11b", "llama3.2:3b-instruct-q4_K_M",
          "mxbai-embed-large:latest", "nomic-embed-text:latest", "qwen3:8b")  # fmt: skip

# Model names in the libraries of Ollama, LocalAI, Groq, and Hugging Face.
LOCAL = (
    "bartowski/Llama-3.2-3B-Instruct-GGUF", "codellama:7b-instruct", "deepseek-r1:8b", "deepseek-v3.2",
    "devstral:24b", "gemma3", "gemma3n:e4b", "gpt-oss:20b", "granite4:tiny-h", "llama3.2", "llama3.2-vision:11b",
    "llava:7b", "meta-llama/Llama-3.3-70B-Instruct", "minicpm-v", "mistral-small", "mistral-small3.2:24b", "phi4",
    "phi4-mini", "Qwen/Qwen2.5-VL-7B-Instruct", "qwen3:8b", "qwq", "smollm2:1.7b-instruct", "tinyllama",
)  # fmt: skip
LOCAL_OTHER = (
    "BAAI/bge-reranker-v2-m3", "Systran/faster-whisper-small", "all-minilm", "babbage-002", "bge-m3",
    "canopylabs/orpheus-v1-english", "dall-e-3", "deepseek-ocr:3b", "embeddinggemma:300m", "flux.1-dev",
    "granite3-guardian", "gte-large", "intfloat/multilingual-e5-large", "jina-reranker-v1-base-en", "kokoro",
    "llama-guard3", "meta-llama/llama-guard-4-12b", "mistral-ocr-latest", "mxbai-embed-large", "nomic-embed-text",
    "openai/gpt-oss-safeguard-20b", "paraphrase-multilingual", "playai-tts", "qwen3-embedding", "sdxl-turbo",
    "shieldgemma:2b", "snowflake-arctic-embed", "stablediffusion", "text-embedding-nomic-embed-text-v1.5",
    "whisper-1", "whisper-large-v3", "xtts-v2",
)  # fmt: skip
# Model names of several vendors as a router lists them, sorted.
ROUTER = (
    "anthropic/claude-3.5-haiku", "anthropic/claude-haiku-4.5", "anthropic/claude-sonnet-4.5",
    "deepseek/deepseek-r1:free", "google/gemini-2.5-flash", "google/gemini-2.5-flash-lite",
    "google/gemini-2.5-flash-lite-preview-09-2025", "meta-llama/llama-3.3-70b-instruct", "openai/gpt-4o-mini",
    "openai/gpt-5", "openai/gpt-5-mini", "qwen/qwen3-8b",
)  # fmt: skip
ROUTER_OTHER = (
    "google/gemini-2.5-flash-image", "openai/gpt-3.5-turbo-instruct", "openai/gpt-4o-audio-preview",
    "openai/gpt-4o-mini-search-preview", "openai/o3-deep-research", "openai/o4-mini-deep-research",
    "openai/text-embedding-3-small",
)  # fmt: skip
